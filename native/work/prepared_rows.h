// Rows that were unpacked once, for several products: memory that threads fill, and then read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "machine/pinned_memory.h"

namespace gguf {

class PreparedRows {
 public:
  /** Throws bad_alloc. */
  PreparedRows(uint64_t n_rows, uint64_t n_bytes)
      : n_rows_(n_rows), memory_(n_bytes == 0 ? nullptr : PinnedMemory::allocate(n_bytes)) {}

  float* floats() const { return reinterpret_cast<float*>(memory_->data()); }
  void add_finished(uint64_t n_rows) { n_finished_.fetch_add(n_rows, std::memory_order_release); }
  /** Whether all are there: before, only who fills them may use them. */
  bool is_ready() const { return n_finished_.load(std::memory_order_acquire) == n_rows_; }
  /** Gives the memory back, of rows that are not ready and never will be. */
  void abandon() { memory_.reset(); }

 private:
  const uint64_t n_rows_;
  std::shared_ptr<PinnedMemory> memory_;
  std::atomic<uint64_t> n_finished_{0};
};

}  // namespace gguf
