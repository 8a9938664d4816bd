// The terms that every kernel uses: kernels, groups, sinks.
//
// A kernel is `dequantize(const Block* b, const Ahead<Block>& ahead, Sink& y)`: it turns one group of blocks
// (kGroup of them) into numbers and passes them to a sink, 32 at a time. It is written in the primitives of
// simd/ (see the README there), so it does not know the instruction set. Its bytes and its formula are above
// it:
//
//   d, m ...   a field of the block; b[2..17] bytes 2 to 17 of the block
//   lo(x)      x & 15            hi(x)      x >> 4
//   y[k]       the k-th number of the block
//
// Arithmetic is IEEE binary32 in the written order, each operation rounded on its own. So results are equal
// to the bit on every instruction set.
//
// A sink receives the numbers: it stores them (sinks/store_sink.h), or uses them in another way. A sink is
// any class that has
//
//   put(at, a, b)     takes the numbers `at` to `at + 31` of the group: 16 in a, 16 in b (simd::Floats16)
//   next_group(n)     the group is complete; later calls of put are about the next one, n numbers further
//   short_group()     the group that follows is the last, and blocks of zeros were added to complete it
//
// A kernel guarantees to a sink: `at` counts from the start of the group and is a multiple of 32; every
// number of the group is put exactly once; the order is the kernel's own, not from the first to the last, but
// the same for every group and on every instruction set. A kernel requires of a sink: `put` does not write to
// the blocks. The loop over groups is put_blocks.h, the same for every kernel and every sink.
#pragma once

// A file of isa/ includes its instruction set first. Without one, for example in an editor that opens only a
// kernel, the scalar set is used.
#ifndef GGUF_SIMD_SET
#include "dequant/simd/scalar.h"
#endif

namespace gguf {
namespace {

/** The number of blocks in a group: one block of 256 weights, or smaller blocks with 512 weights together. */
template <class Block>
constexpr int kGroup = Block::kElements >= 256 ? 1 : 512 / Block::kElements;

/**
 * The part of a group that a kernel needs before it can put a number: its scales, or nothing. It is computed
 * while the previous group is being put: a scale takes a dozen instructions, each of which waits for the one
 * before. A processor without other work at the same time would lose a third of its time.
 */
template <class Block>
struct Ahead {
  GGUF_INLINE void read(const Block*) {}
};

/** Sixteen numbers in memory, where each can be broadcast by a load. */
struct Scales {
  alignas(64) float x[16];

  GGUF_INLINE void set(const simd::Floats16& v) {
    simd::store_aligned(x, v);
    GGUF_KEEP_IN_MEMORY(x);
  }
  GGUF_INLINE float operator[](int i) const { return x[i]; }
};

/** Eight nibbles, each to its own byte, the lowest first. */
constexpr uint64_t spread_nibbles(uint32_t nibbles) {
  uint64_t x = nibbles;
  x = (x | x << 16) & 0x0000ffff0000ffff;
  x = (x | x << 8) & 0x00ff00ff00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

/** Eight pairs of bits, each to its own byte, the lowest first. */
constexpr uint64_t spread_pairs(uint16_t pairs) {
  uint64_t x = pairs;
  x = (x | x << 24) & 0x000000ff000000ff;
  x = (x | x << 12) & 0x000f000f000f000f;
  return (x | x << 6) & 0x0303030303030303;
}

/** The same byte, eight times. */
constexpr uint64_t bytes8(uint8_t byte) {
  return 0x0101010101010101u * byte;
}

}  // namespace
}  // namespace gguf
