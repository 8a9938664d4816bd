// An open file and its bytes: mapped (private, copy-on-write) or read on demand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"

namespace gguf {

struct WatchedMapping;

enum class Access : uint8_t { kMap, kRead };

/** A file that stays open; shared by the handle, every view and every job, unmapped when the last of them is
 * gone. */
class File {
 public:
  /**
   * Opens a regular file; anything else (directory, FIFO, device) is kOpen, at once. `path` is UTF-8 on
   * Windows, bytes as the system takes them elsewhere. Where a file cannot be mapped (some network and FUSE
   * file systems), kMap falls back to reads.
   */
  static Result<std::shared_ptr<File>> open(const std::string& path, Access access);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /** Bytes, when it was opened. */
  uint64_t size() const { return size_; }
  /**
   * `size()` bytes, writable without reaching the file; nullptr where the file has to be read: with
   * Access::kRead, where it could not be mapped, and where it is empty. Where the file is cut off meanwhile,
   * what is gone reads as zeros (on Windows, see fault_guard.h): ask check() afterwards.
   */
  uint8_t* data() const { return data_; }
  /** Whether `n_bytes` from `offset` on that were read from data() were the file's; kTruncated where the file
     has become shorter, or pages of it went missing. */
  Status check(uint64_t offset, uint64_t n_bytes) const;
  /** Copies `n_bytes` from `offset` to `dst`; kTruncated where the file has become shorter. Safe on any
   * thread. */
  Status read(uint64_t offset, void* dst, uint64_t n_bytes) const;
  /**
   * Gives the pages of data() between `begin` and `end` back to the system, which reads them from the file
   * again where they are needed again. What was written to them is lost: only for bytes that nobody outside
   * has a view of. Does nothing where the file is not mapped.
   */
  void forget(uint64_t begin, uint64_t end) const;

 private:
  File() = default;
  // One pair for each system.
  static Result<std::shared_ptr<File>> open_or_throw(const std::string& path, Access access);
  Status read_from_system(uint64_t offset, uint8_t* dst, uint64_t n_bytes) const;
  /** Bytes the file has now; size() where the system does not tell. */
  uint64_t current_size() const;
  /** Where the part of the mapping starts that was replaced by zeros; size() where none was. */
  uint64_t zeroed_from() const;

  /**
   * Whether the bytes are known to be the file's without asking the system, which takes longer than a small
   * tensor does. A truncated file reads as zeros from its end to the end of that page, and pages after that
   * are noted as missing: where none is, and the last byte is not zero, all bytes before it are the file's.
   */
  bool is_surely_whole(uint64_t offset, uint64_t n_bytes) const;
  Error ended_early(uint64_t end) const;

  uint8_t* data_ = nullptr;  // the mapping, or what `held_` holds
  uint64_t size_ = 0;
  std::unique_ptr<uint8_t[]> held_;  // the content of a file that reports no size
#ifdef _WIN32
  void* handle_ = nullptr;
#else
  int fd_ = -1;
  WatchedMapping* watched_ = nullptr;  // of data_
#endif
};

}  // namespace gguf
