// Blocks as numbers, a piece at a time, for work that looks at numbers once: a piece stays in the first-level
// cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dequant/dequant.h"

namespace gguf {

/** Numbers of a piece: whole blocks of every format. */
constexpr uint64_t kPieceNumbers = 4096;

/** Calls `use(numbers, n)` for the numbers of `n_blocks` blocks at `src`, in their order, kPieceNumbers at a
 * time; the last piece may be shorter. What is at `numbers` may be overwritten. */
template <class Use>
void for_each_piece(const Format& format, bool big_endian, const uint8_t* src, uint64_t n_blocks, Use use) {
  alignas(64) float numbers[kPieceNumbers];
  const uint64_t piece_blocks = kPieceNumbers / format.block_elements;
  while (n_blocks > 0) {
    const uint64_t n = std::min(n_blocks, piece_blocks);
    dequantize(format, Out::kFloat32, Store::kPlain, big_endian, src, n, numbers);
    use(numbers, static_cast<size_t>(n * format.block_elements));
    src += n * format.block_bytes;
    n_blocks -= n;
  }
}

}  // namespace gguf
