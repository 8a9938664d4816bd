#include "decode/chunked_decode.h"

#include <algorithm>
#include <new>
#include <utility>

namespace gguf {

ChunkedDecode::ChunkedDecode(const BlockSource& source, BlockSelection selection, void* dst)
    : source_(source),
      selection_(std::move(selection)),
      dst_(static_cast<uint8_t*>(dst)),
      chunk_blocks_(std::max<uint64_t>(1, kChunkBytes / selection_.block_dst_bytes())),
      n_chunks_(selection_.n_blocks / chunk_blocks_ + (selection_.n_blocks % chunk_blocks_ != 0)),
      ready_chunks_(n_chunks_) {}

void ChunkedDecode::set_ready_blocks(uint64_t n_blocks) {
  // Releases the blocks to the thread that claims a chunk of them.
  ready_chunks_.store(n_blocks == selection_.n_blocks ? n_chunks_ : n_blocks / chunk_blocks_,
                      std::memory_order_release);
}

uint64_t ChunkedDecode::unclaimed() const {
  if (stopped_.load(std::memory_order_relaxed)) return 0;
  const uint64_t next = next_chunk_.load(std::memory_order_relaxed);
  const uint64_t ready = ready_chunks_.load(std::memory_order_relaxed);
  return next < ready ? ready - next : 0;
}

bool ChunkedDecode::is_exhausted() const {
  return stopped_.load(std::memory_order_relaxed) || next_chunk_.load(std::memory_order_relaxed) >= n_chunks_;
}

bool ChunkedDecode::work_on_one(std::vector<uint8_t>& scratch) noexcept {
  if (stopped_.load(std::memory_order_relaxed)) return false;
  uint64_t chunk = next_chunk_.load(std::memory_order_relaxed);
  do {
    if (chunk >= ready_chunks_.load(std::memory_order_acquire)) return false;
  } while (!next_chunk_.compare_exchange_weak(chunk, chunk + 1, std::memory_order_relaxed));
  const uint64_t first = chunk * chunk_blocks_;
  const uint64_t count = std::min(chunk_blocks_, selection_.n_blocks - first);
  uint8_t* const to = dst_ + first * selection_.block_dst_bytes();
  try {
    if (Status failure = decode_blocks(source_, selection_, first, count, to, scratch)) {
      fail(std::move(*failure));
      return false;
    }
  } catch (const std::bad_alloc&) {
    fail(Error{ErrorCode::kOutOfMemory, "out of memory"});  // short enough to need no allocation
    return false;
  }
  done_blocks_.fetch_add(count, std::memory_order_relaxed);
  return true;
}

void ChunkedDecode::fail(Error error) noexcept {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  if (!failure_) failure_ = std::move(error);
  stop();
}

}  // namespace gguf
