// The order in which kernels put the numbers of a block, 32 at a time: ascending, but for three formats,
// whose bytes hold numbers of both halves of a block. Products add up in this order.
#pragma once

#include "dequant/blocks.h"

namespace gguf {

/** The order of the eight extents of 32 numbers of a block, in the formats that are kPutsInterleaved. */
inline constexpr int kInterleavedOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

template <class Block>
inline constexpr bool kPutsInterleaved = false;
template <>
inline constexpr bool kPutsInterleaved<BlockQ2_K> = true;
template <>
inline constexpr bool kPutsInterleaved<BlockQ3_K> = true;
template <>
inline constexpr bool kPutsInterleaved<BlockTQ2_0> = true;

}  // namespace gguf
