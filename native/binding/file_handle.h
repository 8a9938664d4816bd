// The open file behind a JavaScript object.
#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "binding/blocks.h"
#include "binding/call.h"
#include "binding/pinned_memory.h"
#include "binding/source_copy.h"
#include "core/file.h"
#include "core/header.h"

namespace gguf::binding {

/** A file that was opened and whose header was read. Made on any thread. */
struct OpenedFile {
  std::shared_ptr<File> file;
  Header header;
};

/** A stretch of a file's bytes for use within one call. */
struct Bytes {
  const uint8_t* data = nullptr;
  std::vector<uint8_t> copy;         // what data points to, where they had to be copied
  std::shared_ptr<const File> file;  // whose mapping it points to otherwise, whoever closes it meanwhile

  /** Whether `n_bytes` at `begin` in the file were still there when they were looked at. Call it afterwards.
   */
  Status check(uint64_t begin, uint64_t n_bytes) const {
    return file == nullptr ? std::nullopt : file->check(begin, n_bytes);
  }
};

/** What keeps the bytes that a job reads, whatever becomes of the file meanwhile. */
struct BlockHold {
  std::shared_ptr<const File> file;
  std::shared_ptr<PinnedMemory> memory;
  Napi::ObjectReference array;       // over shared memory
  std::unique_ptr<SourceCopy> copy;  // of memory that can go away
};

/**
 * A GGUF file that is mapped, read on demand, or in memory that belongs to JavaScript. In the latter case
 * only a reference to the array is kept: where its bytes are is looked up at each use, because they can move
 * or go away whenever JavaScript runs.
 */
class FileHandle {
 public:
  FileHandle(OpenedFile opened, std::string path);
  /** `bytes` is a Uint8Array. */
  FileHandle(Napi::Object bytes, Header header);

  /** The JavaScript object that owns `handle`. */
  static napi_value wrap(napi_env env, std::unique_ptr<FileHandle> handle);
  /** The file of an argument; throws a TypeError for anything else. */
  static FileHandle& of(const Call& call, size_t index);

  /** Throws ERR_GGUF_CLOSED after close(). */
  const Header& header(Environment& environment) const {
    if (header_ == nullptr) throw_closed(environment);
    return *header_;
  }
  /** The same for whoever uses it beyond a call that may run JavaScript, which may close the file. */
  std::shared_ptr<const Header> shared_header(Environment& environment) const {
    header(environment);
    return header_;
  }
  /** nullptr for memory. */
  const std::string* path() const { return is_memory_ ? nullptr : &path_; }
  const TensorInfo& tensor(const Call& call, size_t index) const;
  /** The format of a tensor; throws ERR_GGUF_UNSUPPORTED_TYPE where it is not known. */
  const Format& format_of(Environment& environment, const TensorInfo& tensor) const;

  /**
   * Drops what keeps the bytes and detaches the views that are still where they were made. Views that were
   * moved elsewhere and jobs keep the mapping until they are done with it. Idempotent.
   */
  void close(napi_env env);

  /** The bytes from `begin` to `end`; always a copy where JavaScript may run before they are used up. */
  Bytes bytes(Environment& environment, uint64_t begin, uint64_t end, bool javascript_may_run);
  /** Where `n_bytes` of `tensor` from `skipped_bytes` on are, for use before JavaScript runs again. */
  BlockSource blocks(Environment& environment, const TensorInfo& tensor, uint64_t skipped_bytes,
                     uint64_t n_bytes);
  /** The same for use by other threads as long as `hold` exists. */
  BlockSource pinned_blocks(Environment& environment, const TensorInfo& tensor, uint64_t skipped_bytes,
                            uint64_t n_bytes, BlockHold* hold);
  /**
   * The same for the `rows` of a tensor, `row_bytes` each and within its first `n_bytes`. Where bytes have to
   * be copied these are only those of the rows: `rows` then become their places in the copy.
   */
  BlockSource pinned_rows(Environment& environment, const TensorInfo& tensor, uint64_t n_bytes,
                          uint64_t row_bytes, std::vector<uint64_t>* rows, BlockHold* hold);
  /** All bytes of a tensor as a Uint8Array. */
  napi_value view(Environment& environment, size_t index);

 private:
  [[noreturn]] void throw_closed(Environment& environment) const;
  /** Throws unless the file is open and `n_bytes` from `offset` on are there; looks up the array of parsed
   * memory. */
  const uint8_t* locate(Environment& environment, uint64_t offset, uint64_t n_bytes);
  napi_value copied_view(Environment& environment, uint64_t offset, uint64_t n_bytes);
  napi_value mapped_view(Environment& environment, uint32_t index, uint64_t offset, uint64_t n_bytes);

  std::shared_ptr<const Header> header_;  // nullptr once closed
  std::string path_;
  bool is_memory_;
  Napi::ObjectReference array_;            // of memory
  std::shared_ptr<File> file_;             // of a file
  std::shared_ptr<PinnedMemory> mapping_;  // of a file that is mapped
  /** The ArrayBuffers that were given out, by tensor: weakly, so that they can be collected. */
  std::unordered_map<uint32_t, Napi::Reference<Napi::ArrayBuffer>> views_;
};

/** The entry point for the stored bytes of a tensor. */
napi_value tensor_bytes(const Call& call);
/** The entry point that copies some of them into an array of the caller's. */
napi_value read_tensor_bytes(const Call& call);

/**
 * Makes `data` (`n_bytes` of `array`, a Uint8Array) usable by other threads as long as `hold` exists: in
 * place where the memory cannot go away, else as a copy, of which only the beginning is there at first.
 */
const uint8_t* pin_bytes(napi_env env, napi_value array, const uint8_t* data, uint64_t n_bytes,
                         BlockHold* hold);

}  // namespace gguf::binding
