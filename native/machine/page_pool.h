// Large blocks of pages, for the arrays of allocate() and for copies. They are used again: pages that are
// present are written to three to six times faster than fresh ones. One pool for the process; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf::page_pool {

/** Smaller blocks are not worth pages of their own. */
constexpr uint64_t kMinBytes = uint64_t{1} << 20;

struct Block {
  uint8_t* data;
  size_t n_bytes;
};

/** A block of at least `n_bytes`, whose content is not defined. Throws bad_alloc. */
Block take(uint64_t n_bytes);

/**
 * The same, with zeros in the first `n_bytes`. Pages that were never used stay unused: the system makes them
 * zero when they are first written to, by whichever thread does.
 */
Block take_zeroed(uint64_t n_bytes);

/** Keeps the block for a later take(), if all that is kept stays within limit(); otherwise unmaps it. Needs
 * no memory: destructors call it. */
void give_back(Block block) noexcept;

/** Unmaps all that is kept. */
void trim() noexcept;

/** The most that is kept: an eighth of the machine's memory, 1 GiB at most, or what GGUF_NATIVE_POOL_MB says.
 */
uint64_t limit();

}  // namespace gguf::page_pool
