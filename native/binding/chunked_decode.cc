#include "binding/chunked_decode.h"

#include <algorithm>
#include <new>
#include <utility>

namespace gguf::binding {

ChunkedDecode::ChunkedDecode(const BlockSource& source, BlockOrder order, const Format& format, Out out,
                             bool may_stream, uint64_t n_blocks, void* dst)
    : source_(source),
      order_(std::move(order)),
      format_(format),
      out_(out),
      may_stream_(may_stream),
      n_blocks_(n_blocks),
      dst_(static_cast<uint8_t*>(dst)) {
  const uint64_t chunk_elements = kChunkBytes / out_bytes(out);
  chunk_blocks_ = std::max<uint64_t>(1, chunk_elements / format.block_elements);
  n_chunks_ = n_blocks / chunk_blocks_ + (n_blocks % chunk_blocks_ != 0);
  ready_chunks_ = n_chunks_;
}

void ChunkedDecode::set_ready_blocks(uint64_t n_blocks) {
  // Releases the blocks to the thread that claims a chunk of them.
  ready_chunks_.store(n_blocks == n_blocks_ ? n_chunks_ : n_blocks / chunk_blocks_,
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
  const uint64_t count = std::min(chunk_blocks_, n_blocks_ - first);
  try {
    if (Status failure = decode(first, count, scratch)) {
      fail(std::move(*failure));
      return false;
    }
  } catch (const std::bad_alloc&) {
    fail(Error{ErrorCode::kOutOfMemory, "out of memory"});
    return false;
  }
  done_blocks_.fetch_add(count, std::memory_order_relaxed);
  return true;
}

Status ChunkedDecode::decode(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) const {
  const uint64_t out_block_bytes = format_.block_elements * out_bytes(out_);
  uint8_t* to = dst_ + first * out_block_bytes;
  const uint64_t row_blocks = order_.row_blocks;
  const uint64_t block_bytes = format_.block_bytes;
  if (row_blocks == 0) {
    Status failure = decode_blocks(source_, format_, out_, may_stream_, first, count, to, scratch);
    return failure ? failure : check_source(source_, first * block_bytes, count * block_bytes);
  }
  uint64_t begin = UINT64_MAX, end = 0;  // of the blocks that are needed
  while (count > 0) {
    const uint64_t in_row = first % row_blocks;
    const uint64_t n = std::min(count, row_blocks - in_row);
    const uint64_t from = order_.rows[static_cast<size_t>(first / row_blocks)] * row_blocks + in_row;
    if (Status failure = decode_blocks(source_, format_, out_, may_stream_, from, n, to, scratch))
      return failure;
    begin = std::min(begin, from);
    end = std::max(end, from + n);
    first += n;
    count -= n;
    to += n * out_block_bytes;
  }
  return begin < end ? check_source(source_, begin * block_bytes, (end - begin) * block_bytes) : std::nullopt;
}

void ChunkedDecode::fail(Error error) noexcept {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  if (!failure_) failure_ = std::move(error);
  stop();
}

}  // namespace gguf::binding
