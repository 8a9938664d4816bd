// Large blocks of pages, used again: memory that was written before takes results three to six times faster
// than fresh memory. Process-wide; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf::binding::page_pool {

/** Smaller blocks are not worth pages of their own. */
constexpr uint64_t kMinBytes = uint64_t{1} << 20;

/** A block of at least `n_bytes`, and how many it has. Throws bad_alloc. What it holds is anybody's guess. */
struct Block {
  uint8_t* data;
  size_t n_bytes;
};
Block take(uint64_t n_bytes);

/** Keeps the block for the next taker, if all that is kept stays within limit(); otherwise unmaps it. */
void give_back(Block block);

/** Unmaps all that is kept. */
void trim();

/** The most that is kept: an eighth of the machine's memory, 1 GiB at most, or what GGUF_NATIVE_POOL_MB says.
 */
uint64_t limit();

}  // namespace gguf::binding::page_pool
