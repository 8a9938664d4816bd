// The ternary formats: 256 weights per block, each -1, 0 or 1 times one scale.
#pragma once

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

// TQ1_0   0               48   52  54
//         | q             | qh | d |
//
//   A byte v holds five digits in base 3, as v/256: digit n is t(v, n) = (((v * 3^n) mod 256) * 3) >> 8.
//   y[32n + m]       = (t(q[m], n) - 1) * d           n < 5, m < 32
//   y[160 + 16n + m] = (t(q[32 + m], n) - 1) * d      n < 5, m < 16
//   y[240 + 4n + m]  = (t(qh[m], n) - 1) * d          n < 4, m < 4
template <class Sink>
GGUF_INLINE void dequantize(const BlockTQ1_0* b, const Ahead<BlockTQ1_0>&, Sink& y) {
  // Units 0 to 2 are q. Unit 3 is qh, its four bytes multiplied by 1, 3, 9 and 27: its first digit is the
  // result.
  const auto number = Sink::template scaled<Ternary>(simd::half(b->d));
  const auto x0 = simd::load_trits(b->q, Sink::kTo), x1 = simd::times3(x0), x2 = simd::times3(x1),
             x3 = simd::times3(x2), x4 = simd::times3(x3);
  const auto v0 = simd::values<Ternary>(simd::top_trits(x0)), v1 = simd::values<Ternary>(simd::top_trits(x1)),
             v2 = simd::values<Ternary>(simd::top_trits(x2)), v3 = simd::values<Ternary>(simd::top_trits(x3)),
             v4 = simd::values<Ternary>(simd::top_trits(x4));
  y.put_codes(0, number, v0, 0);
  y.put_codes(32, number, v1, 0);
  y.put_codes(64, number, v2, 0);
  y.put_codes(96, number, v3, 0);
  y.put_codes(128, number, v4, 0);
  y.put_codes(160, number, v0, 2, v1, 2);
  y.put_codes(192, number, v2, 2, v3, 2);
  y.put_codes(224, number, v4, 2, v0, 3);
}

// TQ2_0   0               64  66
//         | q             | d |
//
//   y[128n + 32l + m] = (((q[32n + m] >> 2l) & 3) - 1) * d        n < 2, l < 4, m < 32
template <int L, class Codes, class Number, class Sink>
GGUF_INLINE void tq2_0_quarter(const Codes& q, const Number& number, Sink& y) {
  const auto v = simd::values<Ternary>(simd::shift<2 * L>(q));
  y.put_codes(32 * L, number, v, 0);
  y.put_codes(128 + 32 * L, number, v, 2);
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockTQ2_0* b, const Ahead<BlockTQ2_0>&, Sink& y) {
  const auto number = Sink::template scaled<Ternary>(simd::half(b->d));
  const auto q = simd::load<2>(b->q, Sink::kTo);
  tq2_0_quarter<0>(q, number, y);
  tq2_0_quarter<1>(q, number, y);
  tq2_0_quarter<2>(q, number, y);
  tq2_0_quarter<3>(q, number, y);
}

}  // namespace
}  // namespace gguf
