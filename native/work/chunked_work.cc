#include "work/chunked_work.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace gguf {

int useful_threads(uint64_t n, uint64_t most) {
  return static_cast<int>(std::clamp<uint64_t>(n, 1, std::clamp<uint64_t>(most, 1, INT32_MAX)));
}

ChunkedWork::ChunkedWork(uint64_t n_units, uint64_t chunk_units, Unit unit)
    : n_units_(n_units),
      chunk_units_(chunk_units),
      unit_(unit),
      n_chunks_(n_units / chunk_units + (n_units % chunk_units != 0)),
      ready_chunks_(n_chunks_) {}

void ChunkedWork::set_ready_bytes(uint64_t n_bytes, uint64_t n_other_bytes) {
  const uint64_t n_units = std::min(n_bytes / unit_.src_bytes, n_other_bytes / unit_.other_src_bytes);
  // Releases the source to the thread that claims a chunk of it.
  ready_chunks_.store(n_units >= n_units_ ? n_chunks_ : n_units / chunk_units_, std::memory_order_release);
}

uint64_t ChunkedWork::unclaimed() const {
  if (stopped_.load(std::memory_order_relaxed)) return 0;
  const uint64_t next = next_chunk_.load(std::memory_order_relaxed);
  const uint64_t ready = ready_chunks_.load(std::memory_order_relaxed);
  return next < ready ? ready - next : 0;
}

bool ChunkedWork::is_exhausted() const {
  return stopped_.load(std::memory_order_relaxed) || next_chunk_.load(std::memory_order_relaxed) >= n_chunks_;
}

bool ChunkedWork::work_on_one(std::vector<uint8_t>& scratch) noexcept {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  uint64_t chunk = next_chunk_.load(std::memory_order_relaxed);
  do {
    if (chunk >= ready_chunks_.load(std::memory_order_acquire)) return false;
  } while (!next_chunk_.compare_exchange_weak(chunk, chunk + 1, std::memory_order_relaxed));
  const uint64_t first = chunk * chunk_units_;
  const uint64_t count = std::min(chunk_units_, n_units_ - first);
  try {
    if (Status failure = do_units(first, count, scratch)) {
      fail_chunk(std::move(*failure), chunk);
      return false;
    }
  } catch (const std::exception&) {  // bad_alloc, or length_error: a vector that cannot be so long
    fail(no_memory());
    return false;
  }
  done_units_.fetch_add(count, std::memory_order_relaxed);
  return true;
}

void ChunkedWork::fail(Error error) noexcept {
  fail_chunk(std::move(error), 0);
}

void ChunkedWork::fail_chunk(Error error, uint64_t chunk) noexcept {
  const MutexLock lock(failure_mutex_);
  // Chunks are claimed in their order and completed, so the first that fails is always among these.
  if (!failure_ || chunk < failed_chunk_) {
    failure_ = std::move(error);
    failed_chunk_ = chunk;
  }
  stop();
}

}  // namespace gguf
