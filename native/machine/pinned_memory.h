// Memory that stays where it is while anything holds it: what worker threads may read and write, whatever
// becomes of the ArrayBuffers over it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/file.h"
#include "machine/page_pool.h"

namespace gguf {

/**
 * A block of memory that this library owns: an allocation, or the mapping of a file. ArrayBuffers over it
 * hold it until they are collected; a job holds it until it is done. All such memory of the process is
 * registered by address, so that find() recognises an array that lies in it.
 */
class PinnedMemory {
 public:
  /** At least `n_bytes` (not 0) of uninitialised memory, aligned to a cache line; large blocks come from the
     pool of pages and go back to it. Throws bad_alloc. */
  static std::shared_ptr<PinnedMemory> allocate(uint64_t n_bytes);
  /** The same, with zeros in the first `n_bytes`. */
  static std::shared_ptr<PinnedMemory> allocate_zeroed(uint64_t n_bytes);
  /** The mapping of `file`, whose data() is not null; `path` is for errors about it. */
  static std::shared_ptr<PinnedMemory> of_mapping(std::shared_ptr<const File> file, std::string path);
  /** The memory that all of the `n_bytes` at `data` lie in; nullptr for memory of others. Any thread. */
  static std::shared_ptr<PinnedMemory> find(const void* data, uint64_t n_bytes);

  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  /** Whether all of the `n_bytes` at `data` lie in it. */
  bool has(const void* data, uint64_t n_bytes) const;
  /** The file that is mapped, and its path; nullptr for an allocation. */
  const File* file() const { return file_.get(); }
  const std::string* path() const { return file_ == nullptr ? nullptr : &path_; }

 private:
  PinnedMemory(uint8_t* data, uint64_t size, std::shared_ptr<const File> file, std::string path);
  static std::shared_ptr<PinnedMemory> over_block(page_pool::Block block);
  /** Makes it known to find(), once it has an owner: another thread may find it at once. */
  static std::shared_ptr<PinnedMemory> registered(std::shared_ptr<PinnedMemory> memory);

  uint8_t* data_;
  uint64_t size_;
  std::shared_ptr<const File> file_;  // nullptr for an allocation
  std::string path_;
};

}  // namespace gguf
