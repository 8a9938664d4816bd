// The blocks that a call names: of a tensor, of a Uint8Array, or the numbers of a Float32Array.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "binding/buffers.h"
#include "binding/call.h"
#include "binding/outputs.h"
#include "binding/source_copy.h"
#include "core/header.h"
#include "machine/pinned_memory.h"
#include "work/decode_blocks.h"

namespace gguf::binding {

class FileHandle;

/** What keeps the bytes that a job reads, whatever becomes of the file and of arrays meanwhile. */
struct BlockHold {
  std::optional<std::string> path;  // of the file, for errors
  std::shared_ptr<const File> file;
  std::shared_ptr<PinnedMemory> memory;
  Napi::ObjectReference array;       // over shared memory
  std::unique_ptr<SourceCopy> copy;  // of memory that can go away

  bool is_copying() const { return copy != nullptr && !copy->is_complete(); }
};

/**
 * Knows which blocks a call asks for, but keeps no pointer to them: where they are is looked up each time,
 * since they can move or go away whenever JavaScript runs. For use during that call.
 */
class BlockRequest {
 public:
  /** Of the file, for errors; nullptr where there is none. An array that is a view of a mapped file has one.
   */
  const std::string* path() const;
  /** Where the blocks are, until JavaScript runs again. Throws where they are not there, or no longer. */
  BlockSource locate(const Call& call) const;
  /** The same for other threads, as long as `hold` exists: in place where the memory cannot go away, else as
   * a copy, of which only the beginning is there at first. */
  BlockSource pin(const Call& call, BlockHold* hold) const;
  const Format& format() const { return format_; }

 protected:
  BlockRequest() = default;
  /** Of a file, argument `index`: bytes are counted from its start. */
  void take_file(const Call& call, size_t index);
  /** Of file and tensor, argument `index` and the next: returns the tensor, good until JavaScript runs again.
   */
  const TensorInfo& take_tensor(const Call& call, size_t index = 0);
  /** Of type and blocks, argument `index` and the next. */
  void take_array(const Call& call, bool big_endian, size_t index = 0);
  /** Of a Float32Array, as blocks of F32: all of argument `index`. */
  void take_numbers(const Call& call, size_t index);
  /** The blocks from `start` to `end`, elements in argument `index` and the next, of `n_elements`: returns
   * how many those are. */
  uint64_t take_blocks(const Call& call, size_t index, uint64_t n_elements);
  /** The blocks that are needed: from byte `first` of the tensor or the array on. */
  void take_bytes(uint64_t first, uint64_t n_bytes);
  uint64_t array_bytes() const { return array_bytes_; }
  /** The output in argument `index`; or a new array, but only when the blocks are there. May run JavaScript.
   */
  Output find_or_make_output(const Call& call, size_t index, Out out, uint64_t n_elements) const;
  /** Whether the blocks at `source` can be read there by other threads as long as `hold` exists. */
  bool hold_in_place(const Call& call, const BlockSource& source, BlockHold* hold) const;

 private:
  napi_value memory_array(const Call& call) const;
  /** The array of blocks, with its length in bytes. */
  TypedArray array(const Call& call) const;
  void look_up_array(const Call& call);

  Format format_{};
  FileHandle* file_ = nullptr;  // of argument 0, so it exists during the call; nullptr for bytes
  uint64_t tensor_offset_ = 0;  // in the file
  uint64_t src_offset_ = 0;     // of the first byte that is needed: in the file, or in the array
  uint64_t src_bytes_ = 0;
  /** Where an array lies, if that is memory of the addon: of a mapped file, it is checked as tensors are. */
  std::shared_ptr<PinnedMemory> array_memory_;
  size_t array_argument_ = 0;
  bool array_of_floats_ = false;
  uint64_t array_bytes_ = 0;  // of the array, when it was checked
  bool big_endian_ = false;
};

}  // namespace gguf::binding
