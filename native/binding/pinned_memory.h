// Memory that cannot go away while somebody holds it: what worker threads may read and write, whatever
// JavaScript does to the ArrayBuffers over it.
#pragma once

#include <cstdint>
#include <memory>

#include "core/file.h"

namespace gguf::binding {

/**
 * A block of memory of our own: an allocation, or the mapping of a file. ArrayBuffers over it hold it until
 * they are collected; a job holds it until it is done. All of it in the process is known by address, so that
 * an array that comes in from JavaScript is recognised as lying in it.
 */
class PinnedMemory : public std::enable_shared_from_this<PinnedMemory> {
 public:
  /** At least `n_bytes` (not 0) of uninitialised memory, aligned to a cache line; large blocks come from the
     pool of pages and go back to it. Throws bad_alloc. */
  static std::shared_ptr<PinnedMemory> allocate(uint64_t n_bytes);
  /** The mapping of `file`, whose data() is not null. */
  static std::shared_ptr<PinnedMemory> of_mapping(std::shared_ptr<const File> file);
  /** What all of the `n_bytes` at `data` lie in; nullptr where that is not ours. Any thread. */
  static std::shared_ptr<PinnedMemory> find(const void* data, uint64_t n_bytes);

  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  PinnedMemory(uint8_t* data, uint64_t size, std::shared_ptr<const File> file);

  uint8_t* data_;
  uint64_t size_;
  std::shared_ptr<const File> file_;  // nullptr for an allocation
};

}  // namespace gguf::binding
