// The simple formats: small blocks, most of them with 32 weights and one scale, some also with a minimum.
//
// Blocks of 32 weights are decoded sixteen at a time: their scales are converted together, and the quants of
// four blocks of 16 bytes fill a Codes, one block per unit.
#pragma once

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

/** The scales of sixteen blocks. */
template <class Block>
struct BlockScales {
  Scales d;
  GGUF_INLINE void read(const Block* b) { d.set(simd::halves<sizeof *b>(b->d)); }
};
template <>
struct Ahead<BlockQ4_0> : BlockScales<BlockQ4_0> {};
template <>
struct Ahead<BlockQ5_0> : BlockScales<BlockQ5_0> {};
template <>
struct Ahead<BlockQ8_0> : BlockScales<BlockQ8_0> {};
template <>
struct Ahead<BlockQ8_1> : BlockScales<BlockQ8_1> {};
template <>
struct Ahead<BlockIQ4_NL> : BlockScales<BlockIQ4_NL> {};

/** The scales and minima of sixteen blocks. */
template <class Block>
struct BlockScalesAndMinima {
  Scales d, m;
  GGUF_INLINE void read(const Block* b) {
    d.set(simd::halves<sizeof *b>(b->d));
    m.set(simd::halves<sizeof *b>(b->m));
  }
};
template <>
struct Ahead<BlockQ4_1> : BlockScalesAndMinima<BlockQ4_1> {};
template <>
struct Ahead<BlockQ5_1> : BlockScalesAndMinima<BlockQ5_1> {};

// Q4_0    0   2              18
//         | d | q            |
//
//   y[j] = (lo(q[j]) - 8) * d        y[j+16] = (hi(q[j]) - 8) * d        j < 16
template <class Levels, class Block, class ScaleArray, class Sink>
GGUF_INLINE void dequantize_nibbles(const Block* b, const ScaleArray& d, Sink& y) {
  repeat<16, 4>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto q = simd::load_runs<4, sizeof(Block)>(b[i].q, Sink::kTo);
    const auto lo = simd::values<Levels>(q);
    const auto hi = simd::values<Levels>(simd::shift<4>(q));
    const auto number = [&](int k) GGUF_INLINE_LAMBDA { return Sink::template scaled<Levels>(d, i + k); };
    y.put_rows(32 * i, number, lo, hi);
  });
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockQ4_0* b, const Ahead<BlockQ4_0>& ahead, Sink& y) {
  dequantize_nibbles<Offset<4>>(b, ahead.d, y);
}

// Q4_1    0   2   4              20
//         | d | m | q            |
//
//   y[j] = lo(q[j]) * d + m        y[j+16] = hi(q[j]) * d + m        j < 16
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ4_1* b, const Ahead<BlockQ4_1>& ahead, Sink& y) {
  using Levels = Unsigned<4>;
  repeat<16, 4>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto q = simd::load_runs<4, sizeof *b>(b[i].q, Sink::kTo);
    const auto lo = simd::values<Levels>(q);
    const auto hi = simd::values<Levels>(simd::shift<4>(q));
    const auto number = [&](int k) GGUF_INLINE_LAMBDA {
      return Sink::template affine<Levels>(ahead.d, ahead.m, i + k);
    };
    y.put_rows(32 * i, number, lo, hi);
  });
}

/** The fifth bits of four blocks: those of y[0..15] of each (Half 0), or those of y[16..31] (Half 1). */
template <int Half, class Block>
GGUF_INLINE uint64_t fifth_bits(const Block* b) {
  uint64_t bits = 0;
  for (int k = 0; k < 4; ++k) bits |= static_cast<uint64_t>(word16(b[k].qh + 2 * Half)) << 16 * k;
  return bits;
}

// Q5_0    0   2    6              22
//         | d | qh | q            |
//
//   y[j] = ((lo(q[j]) | bit j of qh << 4) - 16) * d
//   y[j+16] = ((hi(q[j]) | bit j+16 of qh << 4) - 16) * d        j < 16
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ5_0* b, const Ahead<BlockQ5_0>& ahead, Sink& y) {
  using Levels = Offset<5>;
  repeat<16, 4>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto q = simd::load_runs<5, sizeof *b>(b[i].q, Sink::kTo);
    const auto lo =
        simd::values<Levels>(simd::select<15>(q, simd::spread_bits<5>(fifth_bits<0>(b + i), Sink::kTo)));
    const auto hi = simd::values<Levels>(
        simd::select<15>(simd::shift<4>(q), simd::spread_bits<5>(fifth_bits<1>(b + i), Sink::kTo)));
    const auto number = [&](int k)
                            GGUF_INLINE_LAMBDA { return Sink::template scaled<Levels>(ahead.d, i + k); };
    y.put_rows(32 * i, number, lo, hi);
  });
}

// Q5_1    0   2   4    8              24
//         | d | m | qh | q            |
//
//   y[j] = (lo(q[j]) | bit j of qh << 4) * d + m
//   y[j+16] = (hi(q[j]) | bit j+16 of qh << 4) * d + m        j < 16
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ5_1* b, const Ahead<BlockQ5_1>& ahead, Sink& y) {
  using Levels = Unsigned<5>;
  repeat<16, 4>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto q = simd::load_runs<5, sizeof *b>(b[i].q, Sink::kTo);
    const auto lo =
        simd::values<Levels>(simd::select<15>(q, simd::spread_bits<5>(fifth_bits<0>(b + i), Sink::kTo)));
    const auto hi = simd::values<Levels>(
        simd::select<15>(simd::shift<4>(q), simd::spread_bits<5>(fifth_bits<1>(b + i), Sink::kTo)));
    const auto number = [&](int k) GGUF_INLINE_LAMBDA {
      return Sink::template affine<Levels>(ahead.d, ahead.m, i + k);
    };
    y.put_rows(32 * i, number, lo, hi);
  });
}

// Q8_0    0   2                              34
//         | d | q                            |
//
//   y[j] = q[j] * d, q signed        j < 32
template <class Block, class Sink>
GGUF_INLINE void dequantize_bytes(const Block* b, const Scales& d, Sink& y) {
  repeat<16>(y, [&](int i) GGUF_INLINE_LAMBDA {
    y.put_codes(32 * i, Sink::template scaled<Signed8>(d, i), SignedBytes{b[i].q}, 0);
  });
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockQ8_0* b, const Ahead<BlockQ8_0>& ahead, Sink& y) {
  dequantize_bytes(b, ahead.d, y);
}

// Q8_1    0   2     4                              36
//         | d | sum | q                            |
//
//   y[j] = q[j] * d, q signed        j < 32; the sum is not needed
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ8_1* b, const Ahead<BlockQ8_1>& ahead, Sink& y) {
  dequantize_bytes(b, ahead.d, y);
}

/** Puts 64 weights that share a scale. */
template <class V, class Number, class Sink>
GGUF_INLINE void put_64(int at, const V& v, const Number& number, Sink& y) {
  y.put_codes(at, number, v, 0);
  y.put_codes(at + 32, number, v, 2);
}

// Q1_0    0   2              18
//         | d | q            |
//
//   y[j] = bit j%8 of q[j/8] ? d : -d        j < 128
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ1_0* b, const Ahead<BlockQ1_0>&, Sink& y) {
  repeat<kGroup<BlockQ1_0>>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto number = Sink::template scaled<Sign>(simd::half(b[i].d));
    put_64(128 * i, simd::values<Sign>(simd::spread_bits<1>(word64(b[i].q), Sink::kTo)), number, y);
    put_64(128 * i + 64, simd::values<Sign>(simd::spread_bits<1>(word64(b[i].q + 8), Sink::kTo)), number, y);
  });
}

// Q2_0    0   2              18
//         | d | q            |
//
//   y[j] = (((q[j/4] >> 2*(j%4)) & 3) - 1) * d        j < 64
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ2_0* b, const Ahead<BlockQ2_0>&, Sink& y) {
  repeat<kGroup<BlockQ2_0>>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto v = simd::values<Ternary>(simd::load_packed<2>(b[i].q, Sink::kTo));
    put_64(64 * i, v, Sink::template scaled<Ternary>(simd::half(b[i].d)), y);
  });
}

// IQ4_NL  0   2              18
//         | d | q            |
//
//   y[j] = d * N[lo(q[j])]        y[j+16] = d * N[hi(q[j])]        j < 16, N the levels Nonlinear4
template <class Sink>
GGUF_INLINE void dequantize(const BlockIQ4_NL* b, const Ahead<BlockIQ4_NL>& ahead, Sink& y) {
  dequantize_nibbles<Nonlinear4>(b, ahead.d, y);
}

/** Half of an unsigned float of four exponent bits (bias 7) and three fraction bits; 0x7f stands for 0. */
constexpr float half_ue4m3(int code) {
  if (code == 0x7f) return 0;
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10f;
  const float significand =
      static_cast<float>(8 + fraction) * 0x1p-11f;  // times 2^(exponent - 7) is times 2^exponent
  return significand * static_cast<float>(1 << exponent);
}

/** Half of 2^(e - 127), because the levels are doubled; a subnormal number if e < 2. */
constexpr float half_power_of_two(int e) {
  float power = 0x1p-128f;
  for (int i = 0; i < e; ++i) power *= 2;
  return power;
}

/** A number for every value of a byte. */
struct ByteTable {
  float number[256] = {};
  template <class Function>
  constexpr explicit ByteTable(Function function) {
    for (int code = 0; code < 256; ++code) number[code] = function(code);
  }
};
constexpr ByteTable kHalfUe4m3(half_ue4m3);
constexpr ByteTable kHalfPowerOfTwo(half_power_of_two);

// MXFP4   0   1              17
//         | e | q            |
//
//   y[j] = K[lo(q[j])] * d        y[j+16] = K[hi(q[j])] * d
//   d = 2^(e - 128)        j < 16, K the levels Fp4
struct Mxfp4Scales {
  const BlockMXFP4* b;
  GGUF_INLINE float operator[](int i) const { return kHalfPowerOfTwo.number[b[i].e]; }
};

template <class Sink>
GGUF_INLINE void dequantize(const BlockMXFP4* b, const Ahead<BlockMXFP4>&, Sink& y) {
  dequantize_nibbles<Fp4>(b, Mxfp4Scales{b}, y);
}

// NVFP4   0        4              36
//         | scales | q            |
//
//   y[16s + j] = K[lo(q[8s + j])] * d        y[16s + 8 + j] = K[hi(q[8s + j])] * d
//   d = half_ue4m3(scales[s])        s < 4, j < 8, K the levels Fp4
struct Nvfp4Scales {
  const BlockNVFP4* b;
  GGUF_INLINE float operator[](int i) const { return kHalfUe4m3.number[b[i >> 2].scales[i & 3]]; }
};

template <class Sink>
GGUF_INLINE void dequantize(const BlockNVFP4* b, const Ahead<BlockNVFP4>&, Sink& y) {
  const Nvfp4Scales d{b};
  repeat<kGroup<BlockNVFP4>>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto v = simd::values<Fp4>(simd::load_nibble_runs<4>(b[i].q, Sink::kTo));
    GGUF_UNROLL
    for (int s = 0; s < 4; s += 2) {
      y.put_halves(64 * i + 16 * s, Sink::template scaled<Fp4>(d, 4 * i + s),
                   Sink::template scaled<Fp4>(d, 4 * i + s + 1), v, s);
    }
  });
}

}  // namespace
}  // namespace gguf
