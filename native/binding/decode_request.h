// What a call asks to be decoded, as its arguments say.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "binding/call.h"
#include "binding/outputs.h"
#include "binding/source_copy.h"
#include "decode/decode_blocks.h"
#include "decode/pinned_memory.h"

namespace gguf::binding {

class FileHandle;

/** What keeps the bytes that a job reads, whatever becomes of the file and of arrays meanwhile. */
struct BlockHold {
  std::shared_ptr<const File> file;
  std::shared_ptr<PinnedMemory> memory;
  Napi::ObjectReference array;       // over shared memory
  std::unique_ptr<SourceCopy> copy;  // of memory that can go away
};

/**
 * Checked arguments of one call, for use during that call. It knows which blocks are asked for, but keeps no
 * pointer to them: where they are is looked up each time, since they can move or go away whenever JavaScript
 * runs.
 */
class DecodeRequest {
 public:
  /** Of file, tensor, dtype, start and end: a range of a tensor's elements. */
  static DecodeRequest of_range(const Call& call);
  /** Of file, tensor, rows, count and dtype: rows of a tensor. */
  static DecodeRequest of_rows(const Call& call);
  /** Of type, blocks, dtype, start and end: a range of the elements of a Uint8Array of blocks. */
  static DecodeRequest of_bytes(const Call& call, bool big_endian);

  BlockSelection selection;

  /** Of the file, for errors; nullptr where there is none. */
  const std::string* path() const;
  /** Argument 5; or a new array, but only when the blocks are there. May run JavaScript. */
  Output find_or_make_output(const Call& call) const;
  /** Where the blocks are, until JavaScript runs again. Throws where they are not there, or no longer. */
  BlockSource locate(const Call& call) const;
  /**
   * The same for other threads as long as `hold` exists: in place where the memory cannot go away, else as a
   * copy. All rows are copied at once, and the selection is changed to their places in the copy. Of a range
   * only the beginning is copied at first.
   */
  BlockSource pin(const Call& call, BlockHold* hold);

 private:
  DecodeRequest() = default;
  /** Reads start and end from arguments 3 and 4, of `n_elements` elements. Returns the first block. */
  uint64_t take_range(const Call& call, uint64_t n_elements);

  FileHandle* file_ = nullptr;  // of argument 0, so it exists during the call; nullptr for bytes
  uint64_t src_offset_ = 0;     // of the first byte that is needed: in the file, or in the array
  uint64_t src_bytes_ = 0;
  uint64_t array_bytes_ = 0;  // of the array, when it was checked
  bool big_endian_ = false;
};

}  // namespace gguf::binding
