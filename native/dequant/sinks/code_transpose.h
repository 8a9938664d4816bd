// The levels of the rows of a tile, from their blocks as they are: there are fewer bytes of codes than of
// levels to transpose, and none is stored in between. Formats that have no function here are unpacked row by
// row (code_sink.h) and then transposed; so are all of sets whose simd::CodeTransposer is void.
#pragma once

#include <type_traits>

#include "dequant/kernels/kernel.h"
#include "dequant/sinks/code_sink.h"

namespace gguf {
namespace {

/** Where the levels of a block of each row go: T is simd::CodeTransposer. */
template <class T>
struct LevelsOfRows {
  uint64_t stride;       // bytes from row to row
  uint8_t* const* runs;  // of the block

  template <int Bits>
  using Words = typename T::template Words<Bits>;
  /** 16 bytes of each row that is in register k of a word. */
  template <int Bits>
  GGUF_INLINE void load(const uint8_t* p, int k, Words<Bits>& words) const {
    T::template transpose<Bits>(p + k * simd::kLanes * stride, stride, words);
  }

  /** The levels of 16 codes of each row, which make(i) gives for word i: half of a run of 32, or a run of 16.
   */
  template <class Levels, class Make>
  GGUF_INLINE void store(int run, int half, int k, Make make) const {
    constexpr int kRows = simd::kRowRegisters * simd::kLanes;
    constexpr int kHalfBytes = 16 * kRows * simd::kLevelBytes<simd::kByteKind<Levels>>;
    uint8_t* const to = runs[run] + half * kHalfBytes + 4 * simd::kLanes * k;  // words of four bytes
    GGUF_UNROLL
    for (int i = 0; i < T::kWords; ++i) T::template store<Levels>(to, i, make(i));
  }

  /** The low nibbles of 16 bytes, and the high ones. */
  template <class Levels>
  GGUF_INLINE void put_nibbles(const uint8_t* q, int low, int low_half, int high, int high_half) const {
    for (int k = 0; k < simd::kRowRegisters; ++k) {
      Words<4> words;
      load<4>(q, k, words);
      store<Levels>(low, low_half, k, [&](int i) GGUF_INLINE_LAMBDA { return words[i]; });
      store<Levels>(high, high_half, k, [&](int i) GGUF_INLINE_LAMBDA { return simd::shift<4>(words[i]); });
    }
  }
  /** Runs of which each has its first half in low nibbles, and its last in high ones. */
  template <class Levels, int kRuns>
  GGUF_INLINE void put_runs(const uint8_t* q) const {
    for (int r = 0; r < kRuns; ++r) put_nibbles<Levels>(q + 16 * r, r, 0, r, 1);
  }
  GGUF_INLINE void put_bytes(const uint8_t* q) const {
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < simd::kRowRegisters; ++k) {
        Words<8> words;
        load<8>(q + 16 * i, k, words);
        store<Signed8>(0, i, k, [&](int w) GGUF_INLINE_LAMBDA { return words[w]; });
      }
    }
  }
  /** Nibbles and, from the bits that `Shift` brings there, what is above them. */
  template <class Levels, int Nibble, int Shift, class Codes>
  GGUF_INLINE void put_joined(int run, int half, int k, const Codes& nibbles, const Codes& above) const {
    store<Levels>(run, half, k, [&](int i) GGUF_INLINE_LAMBDA {
      return simd::select<15>(simd::shift<Nibble>(nibbles[i]), simd::shift<Shift>(above[i]));
    });
  }
};

// Where the bytes of a block go is in the formulas of kernels/.

template <class T>
GGUF_INLINE void transpose_levels(const BlockQ4_0* b, const LevelsOfRows<T>& to) {
  to.template put_runs<Offset<4>, 1>(b->q);
}
template <class T>
GGUF_INLINE void transpose_levels(const BlockQ4_1* b, const LevelsOfRows<T>& to) {
  to.template put_runs<Unsigned<4>, 1>(b->q);
}
template <class T>
GGUF_INLINE void transpose_levels(const BlockIQ4_NL* b, const LevelsOfRows<T>& to) {
  to.template put_runs<Nonlinear4, 1>(b->q);
}
template <class T>
GGUF_INLINE void transpose_levels(const BlockIQ4_XS* b, const LevelsOfRows<T>& to) {
  to.template put_runs<Nonlinear4, 8>(b->q);
}
template <class T>
GGUF_INLINE void transpose_levels(const BlockMXFP4* b, const LevelsOfRows<T>& to) {
  to.template put_runs<Fp4, 1>(b->q);
}
template <class T>
GGUF_INLINE void transpose_levels(const BlockQ8_0* b, const LevelsOfRows<T>& to) {
  to.put_bytes(b->q);
}

template <class T>
GGUF_INLINE void transpose_levels(const BlockQ4_K* b, const LevelsOfRows<T>& to) {
  for (int i = 0; i < 8; ++i) {
    to.template put_nibbles<Unsigned<4>>(b->q + 16 * i, i & ~1, i & 1, i | 1, i & 1);
  }
}

template <int Pair, class T>
GGUF_INLINE void transpose_q5_k_pair(const BlockQ5_K* b, int half, int k,
                                     const typename T::template Words<5>& qh, const LevelsOfRows<T>& to) {
  typename T::template Words<5> q;
  to.template load<5>(b->q + 32 * Pair + 16 * half, k, q);
  to.template put_joined<Unsigned<5>, 0, 2 * Pair - 4>(2 * Pair, half, k, q, qh);
  to.template put_joined<Unsigned<5>, 4, 2 * Pair - 3>(2 * Pair + 1, half, k, q, qh);
}
template <class T>
GGUF_INLINE void transpose_levels(const BlockQ5_K* b, const LevelsOfRows<T>& to) {
  for (int i = 0; i < 2 * simd::kRowRegisters; ++i) {
    const int half = i / simd::kRowRegisters, k = i % simd::kRowRegisters;
    typename T::template Words<5> qh;
    to.template load<5>(b->qh + 16 * half, k, qh);
    transpose_q5_k_pair<0>(b, half, k, qh, to);
    transpose_q5_k_pair<1>(b, half, k, qh, to);
    transpose_q5_k_pair<2>(b, half, k, qh, to);
    transpose_q5_k_pair<3>(b, half, k, qh, to);
  }
}

template <class T>
GGUF_INLINE void transpose_levels(const BlockQ6_K* b, const LevelsOfRows<T>& to) {
  using Levels = Offset<6>;
  for (int i = 0; i < 4 * simd::kRowRegisters; ++i) {
    const int k = i % simd::kRowRegisters, sixteen = i / simd::kRowRegisters;
    const int n = sixteen / 2, half = sixteen % 2, run = 8 * n + half;
    typename T::template Words<6> ql, qh;
    to.template load<6>(b->qh + 16 * sixteen, k, qh);
    to.template load<6>(b->ql + 64 * n + 16 * half, k, ql);
    to.template put_joined<Levels, 0, -4>(run, 0, k, ql, qh);
    to.template put_joined<Levels, 4, 0>(run + 4, 0, k, ql, qh);
    to.template load<6>(b->ql + 64 * n + 32 + 16 * half, k, ql);
    to.template put_joined<Levels, 0, -2>(run + 2, 0, k, ql, qh);
    to.template put_joined<Levels, 4, 2>(run + 6, 0, k, ql, qh);
  }
}

/** Whether the levels of a format are transposed from its blocks. */
template <class Block, class T>
constexpr bool kTransposesBlocks =
    !std::is_void_v<T> && kIsOneOf<Block, BlockQ4_0, BlockQ4_1, BlockIQ4_NL, BlockIQ4_XS, BlockMXFP4,
                                   BlockQ8_0, BlockQ4_K, BlockQ5_K, BlockQ6_K>;

/** A LevelTransposer of kernel_table.h. */
template <class Block, class T>
void transpose_blocks(const uint8_t* blocks, uint64_t stride, uint8_t* const* runs) {
  transpose_levels(reinterpret_cast<const Block*>(blocks), LevelsOfRows<T>{stride, runs});
}

/** How a tile gets what it takes of a format. */
template <class Block, class T = simd::CodeTransposer>
constexpr void take_unpackers(FormatKernels& kernels) {
  kernels.unpack = unpack_blocks<Block, kTransposesBlocks<Block, T>>;
  if constexpr (kTransposesBlocks<Block, T>) kernels.transpose_levels = transpose_blocks<Block, T>;
}

}  // namespace
}  // namespace gguf
