// A range of blocks decoded by several threads at once. Knows nothing of Node.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "binding/blocks.h"

namespace gguf::binding {

/** Which blocks of a source are decoded, and in which order. */
struct BlockOrder {
  std::vector<uint64_t> rows;  // these, one after the other,
  uint64_t row_blocks = 0;     // of so many blocks each; 0: all blocks as they are stored
};

/**
 * Splits a number of blocks into chunks, which threads claim one after the other. The owner keeps the memory
 * of `source` and `dst` until nobody is in work() any more.
 */
class ChunkedDecode {
 public:
  /** `n_blocks` are decoded in all. */
  ChunkedDecode(const BlockSource& source, BlockOrder order, const Format& format, Out out, bool may_stream,
                uint64_t n_blocks, void* dst);

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
    return done_blocks_.load(std::memory_order_relaxed) * format_.block_elements;
  }
  /** The first thing that failed. Call it when nobody is in work(). */
  const Status& failure() const { return failure_; }

 private:
  bool work_on_one(std::vector<uint8_t>& scratch) noexcept;
  /** Decodes `count` blocks from block `first` of the result on. */
  Status decode(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) const;

  const BlockSource source_;
  const BlockOrder order_;
  const Format& format_;
  const Out out_;
  const bool may_stream_;
  const uint64_t n_blocks_;
  uint8_t* const dst_;
  uint64_t chunk_blocks_;
  uint64_t n_chunks_;
  std::atomic<uint64_t> ready_chunks_;
  std::atomic<uint64_t> next_chunk_{0};
  std::atomic<uint64_t> done_blocks_{0};
  std::atomic<bool> stopped_{false};
  std::mutex failure_mutex_;
  Status failure_;
};

}  // namespace gguf::binding
