// The open file behind a JavaScript object.
#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "binding/call.h"
#include "core/file.h"
#include "core/header.h"
#include "machine/pinned_memory.h"
#include "work/decode_blocks.h"
#include "work/prepared_rows.h"

namespace gguf::binding {

/** A file that was opened and whose header was read. Made on any thread. */
struct OpenedFile {
  std::shared_ptr<File> file;
  Header header;
};

/** A range of a file's bytes, for use within one call. */
struct Bytes {
  const uint8_t* data = nullptr;
  std::vector<uint8_t> copy;         // what `data` points to, where they had to be copied
  std::shared_ptr<const File> file;  // whose mapping it points to otherwise, even if it is closed meanwhile

  /** Whether `n_bytes` at `begin` in the file were still there when they were read. Call it afterwards. */
  Status check(uint64_t begin, uint64_t n_bytes) const {
    return file == nullptr ? std::nullopt : file->check(begin, n_bytes);
  }
};

/** The format with this number; throws ERR_GGUF_UNSUPPORTED_TYPE where there is none. `offset` and `path`: of
   the tensor that has it, if there is one. */
Format find_format_or_throw(Environment& environment, uint32_t type, uint64_t offset = Error::kNoOffset,
                            const std::string* path = nullptr);

/**
 * A GGUF file that is mapped, read on demand, or in memory that belongs to JavaScript. Of the latter only a
 * reference to the array is kept: where its bytes are is looked up at each use, because they can move or go
 * away whenever JavaScript runs.
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
  /** The same, for use across JavaScript, which may close the file. */
  std::shared_ptr<const Header> shared_header(Environment& environment) const {
    header(environment);
    return header_;
  }
  bool is_memory() const { return is_memory_; }
  /** nullptr for memory. */
  const std::string* path() const { return is_memory_ ? nullptr : &path_; }
  /** The Uint8Array that was parsed; only of an open file in memory. */
  napi_value memory() const { return array_.Value(); }
  /** nullptr for memory, and once closed. */
  std::shared_ptr<const File> shared_file() const { return file_; }
  /** The tensor of an argument: good until JavaScript runs again. */
  const TensorInfo& tensor(const Call& call, size_t index) const;
  /** The format of a tensor; throws ERR_GGUF_UNSUPPORTED_TYPE where it is not known. */
  Format format_of(Environment& environment, const TensorInfo& tensor) const;

  /**
   * Gives up the bytes, and detaches the views that were not moved. Views that were moved, and jobs, keep the
   * mapping as long as they need it. Closing a closed file does nothing.
   */
  void close(napi_env env);

  /** The bytes from `begin` to `end`; always a copy where JavaScript may run before they are used up. */
  Bytes bytes(Environment& environment, uint64_t begin, uint64_t end, bool javascript_may_run);
  /** Copies bytes from `begin` on to the Uint8Array of argument 3: those from the number of argument 2 on,
   * all of which must be among the `n_bytes` of the tensor or value. Whether the system may `forget` their
   * pages.
   */
  void copy_bytes(const Call& call, uint64_t begin, uint64_t n_bytes, const char* of, bool forget);
  /** Where the blocks of `n_bytes` from `offset` on are, for use before JavaScript runs again. */
  BlockSource blocks(Environment& environment, uint64_t offset, uint64_t n_bytes);
  /** The rows of a tensor that are prepared, or nullptr. */
  std::shared_ptr<const PreparedRows> prepared(const Call& call, size_t index) const;
  /** Until the file is closed. */
  void keep_prepared(const Call& call, size_t index, std::shared_ptr<const PreparedRows> rows);
  /** Whether there was a view of a tensor's bytes. */
  bool has_view(const Call& call, size_t index) const {
    return views_.count(call.uint32(index, "index")) != 0;
  }
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
  Napi::ObjectReference array_;                                                 // of memory
  std::shared_ptr<File> file_;                                                  // of a file
  std::shared_ptr<PinnedMemory> mapping_;                                       // of a file that is mapped
  std::unordered_map<uint32_t, std::shared_ptr<const PreparedRows>> prepared_;  // by tensor
  /** The ArrayBuffers of the views, by tensor: weak, so that they can be collected. */
  std::unordered_map<uint32_t, Napi::Reference<Napi::ArrayBuffer>> views_;
};

}  // namespace gguf::binding
