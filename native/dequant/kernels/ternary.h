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
  const simd::Scaled<Ternary> number(simd::half(b->d));
  const auto x0 = simd::load_trits(b->q), x1 = simd::times3(x0), x2 = simd::times3(x1), x3 = simd::times3(x2),
             x4 = simd::times3(x3);
  const auto v0 = simd::values<Ternary>(simd::top_trits(x0)), v1 = simd::values<Ternary>(simd::top_trits(x1)),
             v2 = simd::values<Ternary>(simd::top_trits(x2)), v3 = simd::values<Ternary>(simd::top_trits(x3)),
             v4 = simd::values<Ternary>(simd::top_trits(x4));
  y.put(0, number(v0, 0), number(v0, 1));
  y.put(32, number(v1, 0), number(v1, 1));
  y.put(64, number(v2, 0), number(v2, 1));
  y.put(96, number(v3, 0), number(v3, 1));
  y.put(128, number(v4, 0), number(v4, 1));
  y.put(160, number(v0, 2), number(v1, 2));
  y.put(192, number(v2, 2), number(v3, 2));
  y.put(224, number(v4, 2), number(v0, 3));
}

// TQ2_0   0               64  66
//         | q             | d |
//
//   y[128n + 32l + m] = (((q[32n + m] >> 2l) & 3) - 1) * d        n < 2, l < 4, m < 32
template <int L, class Sink>
GGUF_INLINE void tq2_0_quarter(const simd::Codes<2>& q, const simd::Scaled<Ternary>& number, Sink& y) {
  const simd::Values<Ternary> v(simd::shift<2 * L>(q));
  y.put(32 * L, number(v, 0), number(v, 1));
  y.put(128 + 32 * L, number(v, 2), number(v, 3));
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockTQ2_0* b, const Ahead<BlockTQ2_0>&, Sink& y) {
  const simd::Scaled<Ternary> number(simd::half(b->d));
  const auto q = simd::load<2>(b->q);
  tq2_0_quarter<0>(q, number, y);
  tq2_0_quarter<1>(q, number, y);
  tq2_0_quarter<2>(q, number, y);
  tq2_0_quarter<3>(q, number, y);
}

}  // namespace
}  // namespace gguf
