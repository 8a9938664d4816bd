// Blocks, a piece at a time, for work that looks at numbers once: those of a piece stay in the first-level
// cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dequant/formats.h"

namespace gguf {

/** Numbers of a piece: whole blocks of every format. */
constexpr uint64_t kPieceNumbers = 4096;

/** Calls `use(blocks, n_blocks)` for the blocks at `src`, in their order, kPieceNumbers numbers at a time;
 * the last piece may be shorter. */
template <class Use>
void for_each_piece(const Format& format, const uint8_t* src, uint64_t n_blocks, Use use) {
  const uint64_t piece_blocks = kPieceNumbers / format.block_elements;
  while (n_blocks > 0) {
    const uint64_t n = std::min(n_blocks, piece_blocks);
    use(src, n);
    src += n * format.block_bytes;
    n_blocks -= n;
  }
}

}  // namespace gguf
