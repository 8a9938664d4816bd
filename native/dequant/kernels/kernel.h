// The terms that every kernel uses:
//
//   code     the bits that a block has for a weight
//   level    the integer that a code stands for (levels.h); a weight is level * scale, or level * scale +
//   minimum run      weights that share a scale: 16 or 32 unit     16 codes or levels: a register of bytes,
//   or a part of one. Four units are loaded together group    blocks that a kernel is called for: one of 256
//   weights, or small ones with 512 together put      a kernel hands codes or numbers to a sink take     a
//   sink gets the levels of 32 weights, as bytes sink     what the numbers are for: to be stored, multiplied
//   ... Ahead    what is computed of a group while the group before is put: scales, rows of codebooks
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
// A kernel hands out what it has: codes, the levels that they stand for, and scales. A sink that wants the
// numbers derives from TakesNumbers, which makes them: it stores them (sinks/store_sink.h), or uses them in
// another way. A sink that wants levels and scales (sinks/code_sink.h) takes those. A sink is any class that
// has
//
//   kTo               ToNumbers{} or ToBytes{}: what codes are loaded for
//   kStraight         whether kernels are straight code without loops
//   scaled<Levels>(d, i), scaled<Levels>(d)
//                     how codes become numbers: level * d[i], or level * d
//   affine<Levels>(d, m, i)
//                     likewise: level * d[i] + m[i]
//   put_codes(at, number, v, unit)
//                     takes the 32 weights from `at` on: those of units `unit` and `unit + 1` of v. `number`
//                     is one of those above. If it has arrays of scales, i is the index of weight `at`
//                     among the runs of 32 weights of the group, or of 16 if kernels call put_halves
//   put_codes(at, number, a, i, b, k)
//                     the same: unit i of a, then unit k of b
//   put_halves(at, first, second, v, unit)
//                     the same, with a `number` for each unit
//   put_rows(at, number, a, b)
//                     takes 128 weights: unit 0 of a, then unit 0 of b, then unit 1 of a ... `number(k)` is
//                     that of the k-th 32 weights
//   put_pairs(at, number, a, b)
//                     the same for units 0 and 1 of a, then those of b, then units 2 and 3 of a, then of b
//   put(at, a, b)     takes the numbers `at` to `at + 31` of the group: 16 in a, 16 in b (simd::Floats16);
//                     only sinks of numbers, since formats whose blocks are numbers have no codes
//   next_group(n)     the group is complete; later calls are about the next one, n numbers further
//   short_group()     the group that follows is the last, and blocks of zeros were added to complete it
//
// A kernel guarantees to a sink: `at` counts from the start of the group and is a multiple of 32; every
// weight of the group is put exactly once; the order is the kernel's own, not from the first to the last, but
// the same for every group and on every instruction set; of every 256 weights those from 224 on are put last.
// A kernel requires of a sink: it does not write to the blocks. The loop over groups is put_blocks.h, the
// same for every kernel and every sink.
#pragma once

// A file of isa/ includes its instruction set first. Without one, for example in an editor that opens only a
// kernel, the scalar set is used.
#ifndef GGUF_SIMD_SET
#include "dequant/simd/scalar_bytes.h"
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

/** The same from the i-th on: some formats keep scales and minima in one array. */
struct ScalesFrom {
  const float* x;
  GGUF_INLINE ScalesFrom(const Scales& scales, int first) : x(scales.x + first) {}
  GGUF_INLINE float operator[](int i) const { return x[i]; }
};

/** Makes numbers of bytes. */
struct ScaledBytes {
  float d;
  GGUF_INLINE explicit ScaledBytes(float scale) : d(scale) {}
  GGUF_INLINE simd::Floats16 operator()(const SignedBytes& v, int unit) const {
    return simd::mul(simd::load_int8(v.p + 16 * unit), d);
  }
};

/** The part of a sink that makes numbers of what a kernel hands out: `Sink` derives from it, and has put().
 */
template <class Sink>
struct TakesNumbers {
  static constexpr ToNumbers kTo{};
  static constexpr bool kStraight = false;

  template <class Levels>
  static GGUF_INLINE auto scaled(float d) {
    if constexpr (std::is_same_v<Levels, Signed8>) {
      return ScaledBytes(d);
    } else {
      return simd::Scaled<Levels>(d);
    }
  }
  template <class Levels, class D>
  static GGUF_INLINE auto scaled(const D& d, int i) {
    return scaled<Levels>(d[i]);
  }
  template <class Levels, class D, class M>
  static GGUF_INLINE auto affine(const D& d, const M& m, int i) {
    return simd::Affine<Levels>(d[i], m[i]);
  }

  template <class Number, class V>
  GGUF_INLINE void put_codes(int at, const Number& number, const V& v, int unit) {
    sink().put(at, number(v, unit), number(v, unit + 1));
  }
  template <class Number, class A, class B>
  GGUF_INLINE void put_codes(int at, const Number& number, const A& a, int i, const B& b, int k) {
    sink().put(at, number(a, i), number(b, k));
  }
  template <class NumberOf, class A, class B>
  GGUF_INLINE void put_rows(int at, NumberOf number, const A& a, const B& b) {
    GGUF_UNROLL
    for (int k = 0; k < 4; ++k) put_codes(at + 32 * k, number(k), a, k, b, k);
  }
  template <class Number, class V>
  GGUF_INLINE void put_halves(int at, const Number& first, const Number& second, const V& v, int unit) {
    sink().put(at, first(v, unit), second(v, unit + 1));
  }
  /** Numbers of the same bytes are all computed before the first is put: a sink may store, and the compiler
   * must assume that it overwrites those bytes. */
  template <class NumberOf, class A, class B>
  GGUF_INLINE void put_pairs(int at, NumberOf number, const A& a, const B& b) {
    GGUF_UNROLL
    for (int k = 0; k < 4; k += 2) {
      const auto first = number(k), second = number(k + 1);
      const auto w = first(a, k), x = first(a, k + 1), y = second(b, k), z = second(b, k + 1);
      sink().put(at + 32 * k, w, x);
      sink().put(at + 32 * k + 32, y, z);
    }
  }

 private:
  GGUF_INLINE Sink& sink() { return static_cast<Sink&>(*this); }
};

/** Calls use(0), use(kStep) ... up to kEnd: in straight code for a sink that is kStraight, whose places and
 * offsets are constants then; for others in a loop, which is smaller. */
template <int kEnd, int kStep = 1, class Sink, class Use>
GGUF_INLINE void repeat(const Sink&, Use use) {
  if constexpr (Sink::kStraight) {
    GGUF_UNROLL
    for (int i = 0; i < kEnd; i += kStep) use(i);
  } else {
    for (int i = 0; i < kEnd; i += kStep) use(i);
  }
}

}  // namespace
}  // namespace gguf
