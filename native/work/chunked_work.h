// Work on a range of blocks or rows by several threads at once.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <vector>

#include "core/mutex.h"
#include "core/result.h"

namespace gguf {

/** How many of at most `most` threads to use where there is something to do for `n`: at least one. */
int useful_threads(uint64_t n, uint64_t most);

/**
 * Splits work into chunks, which threads claim one after the other without a lock. A chunk is a number of
 * units, blocks or rows, each of which gives the same number of elements. The owner keeps the memory that is
 * read and written until no thread is in work() any more.
 */
class ChunkedWork {
 public:
  virtual ~ChunkedWork() = default;
  ChunkedWork(const ChunkedWork&) = delete;
  ChunkedWork& operator=(const ChunkedWork&) = delete;

  /** Where the result begins. Before any thread works. */
  void set_output(void* output) { output_ = static_cast<uint8_t*>(output); }

  /** From now on only the first `n_bytes` of the source are there, and so many of a second one: chunks beyond
   * them wait. */
  void set_ready_bytes(uint64_t n_bytes, uint64_t n_other_bytes = UINT64_MAX);

  /**
   * Works on chunks until none is left that is ready or, once the first is done, `should_stop` says so or
   * stop() was called. Any number of threads at once; each brings its own `scratch`. Never throws: what fails
   * is kept for failure().
   */
  template <class ShouldStop>
  void work(std::vector<uint8_t>& scratch, ShouldStop should_stop) noexcept {
    if (n_threads_.fetch_add(1, std::memory_order_relaxed) < most_threads_) {
      while (work_on_one(scratch) && !should_stop()) {
      }
    }
    n_threads_.fetch_sub(1, std::memory_order_relaxed);
  }

  /** From now on a thread that would be one too many leaves work() at once. Before any thread works. */
  void limit_threads(int most) { most_threads_ = most; }
  int most_threads() const { return most_threads_; }

  /** No chunk will be claimed any more. */
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  uint64_t n_chunks() const { return n_chunks_; }
  /** Chunks that were claimed. */
  uint64_t claimed() const { return next_chunk_.load(std::memory_order_relaxed); }
  /** Chunks that are ready and wait to be claimed; 0 after stop(). */
  uint64_t unclaimed() const;
  /** Whether no chunk will ever be claimed again. */
  bool is_exhausted() const;
  /** Stops, with `error` as the reason unless there is one already. */
  void fail(Error error) noexcept;
  /** Elements of the result: all, and those that are done. */
  uint64_t n_elements() const { return n_units_ * unit_.elements; }
  uint64_t done_elements() const { return done_units_.load(std::memory_order_relaxed) * unit_.elements; }
  /** What failed: of several chunks that did, the first, whichever thread was first. Call it when no thread
   * is in work(). */
  const Status& failure() const GGUF_NEEDS_NO_LOCK { return failure_; }

 protected:
  struct Unit {
    uint64_t elements;             // of the result
    uint64_t src_bytes;            // not 0
    uint64_t other_src_bytes = 1;  // of a second source; not 0
  };
  ChunkedWork(uint64_t n_units, uint64_t chunk_units, Unit unit);

  uint64_t n_units() const { return n_units_; }
  uint8_t* output() const { return output_; }
  /** Does units `first` to `first + count - 1`. On several threads at once. May throw bad_alloc. */
  virtual Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) = 0;

 private:
  bool work_on_one(std::vector<uint8_t>& scratch) noexcept;
  void fail_chunk(Error error, uint64_t chunk) noexcept;

  const uint64_t n_units_;
  const uint64_t chunk_units_;
  const Unit unit_;
  const uint64_t n_chunks_;
  uint8_t* output_ = nullptr;
  int most_threads_ = INT_MAX;
  std::atomic<int> n_threads_{0};
  std::atomic<uint64_t> ready_chunks_;
  std::atomic<uint64_t> next_chunk_{0};
  std::atomic<uint64_t> done_units_{0};
  std::atomic<bool> stopped_{false};
  Mutex failure_mutex_;
  Status failure_ GGUF_GUARDED_BY(failure_mutex_);
  uint64_t failed_chunk_ GGUF_GUARDED_BY(failure_mutex_) = 0;  // where failure_ comes from a chunk
};

}  // namespace gguf
