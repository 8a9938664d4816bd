// The loop around every kernel: it goes over the groups, reads ahead, and completes the last group. It is the
// same for every format and every sink that takes whole groups.
#pragma once

#include <utility>

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

/**
 * How far ahead blocks are asked for. Memory takes about as long to answer as products of integers, which are
 * the fastest, take for this much. They are asked for in the second-level cache, from where every kernel
 * takes them as fast as memory delivers. In the first-level one they would be too early: a Zen 4 takes up to
 * twice as long then.
 */
constexpr size_t kPrefetchBytes = 8192;

/** Asks for the blocks that come kPrefetchBytes after a group. They need not exist. */
template <class Block>
GGUF_INLINE void prefetch_after(const Block* b) {
  // Numbers, since a pointer may not even be formed beyond the end of what it points into.
  const uintptr_t address = reinterpret_cast<uintptr_t>(b) + kPrefetchBytes;
  for (size_t i = 0; i < kGroup<Block> * sizeof(Block); i += 64) prefetch(address + i);
}

/** Copies the last blocks to `group` and adds zeros. A separate function, so that it does not slow down the
 * loop. */
GGUF_NOINLINE inline void complete_group(void* group, size_t group_bytes, const void* blocks,
                                         size_t n_bytes) {
  std::memcpy(group, blocks, n_bytes);
  std::memset(static_cast<uint8_t*>(group) + n_bytes, 0, group_bytes - n_bytes);
}

/** A whole group of blocks: at `b`, or in `completed` if the n_blocks blocks at `b` are fewer than a group.
 */
template <class Block>
GGUF_INLINE const Block* whole_group(const Block* b, uint64_t n_blocks, Block (&completed)[kGroup<Block>]) {
  if (n_blocks >= kGroup<Block>) return b;
  complete_group(completed, sizeof completed, b, static_cast<size_t>(n_blocks) * sizeof(Block));
  return completed;
}

/**
 * Passes the numbers of n_blocks blocks to a sink. The last group is completed with blocks of zeros, whose
 * numbers are also passed to the sink: so neither a kernel nor a sink handles less than a group.
 */
template <class Block, class Sink>
GGUF_INLINE void put_blocks(const Block* b, uint64_t n_blocks, Sink& sink) {
  constexpr int kBlocks = kGroup<Block>;
  if (n_blocks == 0) return;
  Block completed[kBlocks];
  Ahead<Block> ahead[2];
  Ahead<Block>*now = ahead, *later = ahead + 1;
  b = whole_group(b, n_blocks, completed);
  now->read(b);
  for (;;) {
    const Block* next = b + kBlocks;
    const bool is_last = n_blocks <= kBlocks;
    if (!is_last) {
      next = whole_group(b + kBlocks, n_blocks - kBlocks, completed);
      later->read(next);
    }
    if (n_blocks < kBlocks) sink.short_group();
    prefetch_after(b);
    dequantize(b, *now, sink);
    if (is_last) return;
    sink.next_group(kBlocks * Block::kElements);
    std::swap(now, later);
    b = next;
    n_blocks -= kBlocks;
  }
}

}  // namespace
}  // namespace gguf
