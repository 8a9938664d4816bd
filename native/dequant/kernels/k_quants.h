// The k-quants: 256 weights per block, in sub-blocks of 16 or 32 that have their own scales, which are also
// quantized.
#pragma once

#include <cstddef>

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

// Q2_K    0        16              80  82     84
//         | scales | q             | d | dmin |
//
//   y[128n + 32j + l] = (d * lo(s)) * ((q[32n + l] >> 2j) & 3) - dmin * hi(s)
//   s = scales[8n + 2j + l/16]        n < 2, j < 4, l < 32
template <>
struct Ahead<BlockQ2_K> {
  Scales d, m;
  GGUF_INLINE void read(const BlockQ2_K* b) {
    constexpr uint64_t kNibble = bytes8(15);
    const uint64_t s[2] = {word64(b->scales), word64(b->scales + 8)};
    d.set(simd::mul(simd::int8x16(s[0] & kNibble, s[1] & kNibble), simd::half(b->d)));
    m.set(simd::mul(simd::int8x16(s[0] >> 4 & kNibble, s[1] >> 4 & kNibble), -simd::half(b->dmin)));
  }
};

template <int J, class Codes, class Sink>
GGUF_INLINE void q2_k_quarter(const Codes& q, const Ahead<BlockQ2_K>& scales, Sink& y) {
  using Levels = Unsigned<2>;
  const auto v = simd::values<Levels>(simd::shift<2 * J>(q));
  GGUF_UNROLL
  for (int n = 0; n < 2; ++n) {
    const int s = 8 * n + 2 * J;
    y.put_halves(128 * n + 32 * J, Sink::template affine<Levels>(scales.d, scales.m, s),
                 Sink::template affine<Levels>(scales.d, scales.m, s + 1), v, 2 * n);
  }
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockQ2_K* b, const Ahead<BlockQ2_K>& ahead, Sink& y) {
  const auto q = simd::load<2>(b->q, Sink::kTo);
  q2_k_quarter<0>(q, ahead, y);
  q2_k_quarter<1>(q, ahead, y);
  q2_k_quarter<2>(q, ahead, y);
  q2_k_quarter<3>(q, ahead, y);
}

// Q3_K    0       32              96       108 110
//         | hmask | q             | scales | d |
//
//   h = bit 4n+j of hmask[l] ? 0 : 4
//   y[128n + 32j + l] = (d * (S[8n + 2j + l/16] - 32)) * (((q[32n + l] >> 2j) & 3) - h)
//   n < 2, j < 4, l < 32
//   The sixteen S have six bits. The low four: lo(scales[0..7]), then hi(scales[0..7]); the high two of S[i]:
//   bits 2*(i/4) and up of scales[8 + i%4].
template <>
struct Ahead<BlockQ3_K> {
  Scales d;
  GGUF_INLINE void read(const BlockQ3_K* b) {
    constexpr uint64_t kNibble = bytes8(15), kTopPair = bytes8(0x30);
    const uint64_t s = word64(b->scales);
    const uint64_t t = word32(b->scales + 8);
    // Pairs 0, 1 and 2, 3 moved to bits 4 and 5.
    const uint64_t low_tops = t << 4 | t << 34, high_tops = t | t << 30;
    const auto codes =
        simd::int8x16((s & kNibble) | (low_tops & kTopPair), (s >> 4 & kNibble) | (high_tops & kTopPair));
    d.set(simd::mul(simd::add(codes, -32), simd::half(b->d)));
  }
};

template <int J, class Codes, class Sink>
GGUF_INLINE void q3_k_quarter(const Codes& q, const Codes& high, const Scales& d, Sink& y) {
  using Levels = Offset<3>;  // with the bit of hmask as its top bit, a code is its level plus 4
  const auto v = simd::values<Levels>(simd::select<3>(simd::shift<2 * J>(q), simd::shift<J - 2>(high)));
  GGUF_UNROLL
  for (int n = 0; n < 2; ++n) {
    const int s = 8 * n + 2 * J;
    y.put_halves(128 * n + 32 * J, Sink::template scaled<Levels>(d, s),
                 Sink::template scaled<Levels>(d, s + 1), v, 2 * n);
  }
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockQ3_K* b, const Ahead<BlockQ3_K>& ahead, Sink& y) {
  const auto q = simd::load<3>(b->q, Sink::kTo);
  // Quarter j needs bit j of each.
  const auto high = simd::shift_halves<0, 4>(simd::load_twice<3>(b->hmask, Sink::kTo));
  q3_k_quarter<0>(q, high, ahead.d, y);
  q3_k_quarter<1>(q, high, ahead.d, y);
  q3_k_quarter<2>(q, high, ahead.d, y);
  q3_k_quarter<3>(q, high, ahead.d, y);
}

/**
 * The scales and minima of Q4_K and Q5_K: eight pairs of six bits in the twelve bytes S of `scales`. For j <
 * 4, sc[j] = S[j] & 63 and mn[j] = S[j+4] & 63; for j >= 4, sc[j] = lo(S[j+4]) | (S[j-4] >> 6) << 4 and mn[j]
 * = hi(S[j+4]) | (S[j] >> 6) << 4. Gives d * sc[0..7], then -(dmin * mn[0..7]).
 */
template <class Block>
struct SixBitScales {
  Scales s;
  GGUF_INLINE void read(const Block* b) {
    static_assert(offsetof(Block, dmin) == offsetof(Block, d) + sizeof b->d, "next to each other");
    s.set(simd::mul_halves(simd::load_sixes(b->scales), b->d));
  }
};
template <>
struct Ahead<BlockQ4_K> : SixBitScales<BlockQ4_K> {};
template <>
struct Ahead<BlockQ5_K> : SixBitScales<BlockQ5_K> {};

/** Puts half a block of Q4_K or Q5_K: four groups of 32. */
template <class Levels, class Low, class High, class Sink>
GGUF_INLINE void put_four_groups(int group, const Low& lo, const High& hi, const Scales& s, Sink& y) {
  const ScalesFrom d(s, 0), m(s, 8);
  const auto number = [&](int k)
                          GGUF_INLINE_LAMBDA { return Sink::template affine<Levels>(d, m, group + k); };
  y.put_pairs(32 * group, number, lo, hi);
}

// Q4_K    0   2      4        16              144
//         | d | dmin | scales | q             |
//
//   D = d * sc[g], M = dmin * mn[g] (SixBitScales)
//   y[32g + l] = D * (g even ? lo : hi)(q[32*(g/2) + l]) - M        g < 8, l < 32
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ4_K* b, const Ahead<BlockQ4_K>& ahead, Sink& y) {
  using Levels = Unsigned<4>;
  repeat<2>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto q = simd::load<4>(b->q + 64 * i, Sink::kTo);
    const auto lo = simd::values<Levels>(q);
    const auto hi = simd::values<Levels>(simd::shift<4>(q));
    put_four_groups<Levels>(4 * i, lo, hi, ahead.s, y);
  });
}

// Q5_K    0   2      4        16   48              176
//         | d | dmin | scales | qh | q             |
//
//   As Q4_K, with 16 added to the nibble if bit g of qh[l] is set.
template <int I, class Codes, class Sink>
GGUF_INLINE void q5_k_half(const BlockQ5_K* b, const Codes& qh, const Scales& s, Sink& y) {
  using Levels = Unsigned<5>;
  // Bits 4I (units 0, 1) and 4I+2 (units 2, 3) of qh belong to the low nibbles, the next ones to the high
  // nibbles.
  constexpr int kShift = I == 0 ? -4 : 0;
  const auto q = simd::load<5>(b->q + 64 * I, Sink::kTo);
  const auto lo = simd::values<Levels>(simd::select<15>(q, simd::shift_halves<kShift, kShift + 2>(qh)));
  const auto hi = simd::values<Levels>(
      simd::select<15>(simd::shift<4>(q), simd::shift_halves<kShift + 1, kShift + 3>(qh)));
  put_four_groups<Levels>(4 * I, lo, hi, s, y);
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockQ5_K* b, const Ahead<BlockQ5_K>& ahead, Sink& y) {
  const auto qh = simd::load_twice<5>(b->qh, Sink::kTo);
  q5_k_half<0>(b, qh, ahead.s, y);
  q5_k_half<1>(b, qh, ahead.s, y);
}

// Q6_K    0              128             192      208 210
//         | ql           | qh            | scales | d |
//
//   For n < 2, l < 32, scales signed, a = ql[64n + l], c = ql[64n + 32 + l], t = qh[32n + l]:
//   y[128n + l]      = (d * scales[8n + l/16])     * ((lo(a) | ((t >> 0) & 3) << 4) - 32)
//   y[128n + 32 + l] = (d * scales[8n + 2 + l/16]) * ((lo(c) | ((t >> 2) & 3) << 4) - 32)
//   y[128n + 64 + l] = (d * scales[8n + 4 + l/16]) * ((hi(a) | ((t >> 4) & 3) << 4) - 32)
//   y[128n + 96 + l] = (d * scales[8n + 6 + l/16]) * ((hi(c) | ((t >> 6) & 3) << 4) - 32)
template <>
struct Ahead<BlockQ6_K> {
  Scales d;
  GGUF_INLINE void read(const BlockQ6_K* b) {
    d.set(simd::mul(simd::load_int8(b->scales), simd::half(b->d)));
  }
};

template <class Codes, class Sink>
GGUF_INLINE void put_q6_k(int at, const Codes& codes, const Scales& d, Sink& y) {
  using Levels = Offset<6>;
  const auto v = simd::values<Levels>(codes);
  GGUF_UNROLL
  for (int unit = 0; unit < 4; unit += 2) {
    const int s = at / 16 + unit;
    y.put_halves(at + 16 * unit, Sink::template scaled<Levels>(d, s), Sink::template scaled<Levels>(d, s + 1),
                 v, unit);
  }
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockQ6_K* b, const Ahead<BlockQ6_K>& ahead, Sink& y) {
  repeat<2>(y, [&](int n) GGUF_INLINE_LAMBDA {
    const auto ql = simd::load<6>(b->ql + 64 * n, Sink::kTo);
    const auto qh = simd::load_twice<6>(b->qh + 32 * n, Sink::kTo);
    put_q6_k(128 * n, simd::select<15>(ql, simd::shift_halves<-4, -2>(qh)), ahead.d, y);
    put_q6_k(128 * n + 64, simd::select<15>(simd::shift<4>(ql), simd::shift_halves<0, 2>(qh)), ahead.d, y);
  });
}

// Q8_K    0   4                              260             292
//         | d | q                            | sums          |
//
//   y[j] = d * q[j], d a binary32, q signed        j < 256; the sums are not needed
template <class Sink>
GGUF_INLINE void dequantize(const BlockQ8_K* b, const Ahead<BlockQ8_K>&, Sink& y) {
  const auto number = Sink::template scaled<Signed8>(float_of_bits(word32(b->d)));
  repeat<256, 32>(y, [&](int i) GGUF_INLINE_LAMBDA { y.put_codes(i, number, SignedBytes{b->q + i}, 0); });
}

// IQ4_XS  0   2             4            8             136
//         | d | scales_high | scales_low | q           |
//
//   ls = nibble g of scales_low | (bits 2g and 2g+1 of scales_high) << 4        D = d * (ls - 32)
//   y[32g + j] = D * N[lo(q[16g + j])]        y[32g + 16 + j] = D * N[hi(q[16g + j])]
//   g < 8, j < 16, N the levels Nonlinear4
template <>
struct Ahead<BlockIQ4_XS> {
  Scales d;
  GGUF_INLINE void read(const BlockIQ4_XS* b) {
    const auto ls = simd::join_sixes(b->scales_low, b->scales_high);
    d.set(simd::mul(simd::add(ls, -32), simd::half(b->d)));
  }
};

template <class Sink>
GGUF_INLINE void dequantize(const BlockIQ4_XS* b, const Ahead<BlockIQ4_XS>& ahead, Sink& y) {
  using Levels = Nonlinear4;
  repeat<2>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto q = simd::load<4>(b->q + 64 * i, Sink::kTo);
    const auto lo = simd::values<Levels>(q);
    const auto hi = simd::values<Levels>(simd::shift<4>(q));
    const auto number = [&](int k)
                            GGUF_INLINE_LAMBDA { return Sink::template scaled<Levels>(ahead.d, 4 * i + k); };
    y.put_rows(128 * i, number, lo, hi);
  });
}

}  // namespace
}  // namespace gguf
