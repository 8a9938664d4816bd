// A selection of blocks decoded by several threads at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "decode/decode_blocks.h"

namespace gguf {

/**
 * Splits a result into chunks, which threads claim one after the other without a lock. The owner keeps the
 * memory of the source and of `dst` until no thread is in work() any more.
 */
class ChunkedDecode {
 public:
  ChunkedDecode(const BlockSource& source, BlockSelection selection, void* dst);

  /** From now on only the first `n_blocks` of the source are there: chunks beyond them wait. */
  void set_ready_blocks(uint64_t n_blocks);

  /**
   * Works on chunks until none is left that is ready or, once the first is done, `should_stop` says so or
   * stop() was called. Any number of threads at once; each brings its own `scratch`. Never throws: what fails
   * is kept for failure().
   */
  template <class ShouldStop>
  void work(std::vector<uint8_t>& scratch, ShouldStop should_stop) noexcept {
    while (work_on_one(scratch) && !should_stop()) {
    }
  }

  /** No chunk will be claimed any more. */
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  /** Chunks that are ready and wait to be claimed; 0 after stop(). */
  uint64_t unclaimed() const;
  /** Whether no chunk will ever be claimed again. */
  bool is_exhausted() const;
  /** Stops, with `error` as the reason unless there is one already. */
  void fail(Error error) noexcept;
  uint64_t done_elements() const {
    return done_blocks_.load(std::memory_order_relaxed) * selection_.format.block_elements;
  }
  const BlockSelection& selection() const { return selection_; }
  /** The first thing that failed. Call it when no thread is in work(). */
  const Status& failure() const { return failure_; }

 private:
  bool work_on_one(std::vector<uint8_t>& scratch) noexcept;

  const BlockSource source_;
  const BlockSelection selection_;
  uint8_t* const dst_;
  const uint64_t chunk_blocks_;
  const uint64_t n_chunks_;
  std::atomic<uint64_t> ready_chunks_;
  std::atomic<uint64_t> next_chunk_{0};
  std::atomic<uint64_t> done_blocks_{0};
  std::atomic<bool> stopped_{false};
  std::mutex failure_mutex_;
  Status failure_;
};

}  // namespace gguf
