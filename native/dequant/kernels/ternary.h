// The ternary formats: 256 weights per block, each -1, 0 or 1 times one scale.
#pragma once

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

/** Four bytes, each times 3 modulo 256. */
constexpr uint32_t times3_bytes(uint32_t bytes) {
  const uint32_t even = bytes & 0x00ff00ff, odd = bytes >> 8 & 0x00ff00ff;
  return (even * 3 & 0x00ff00ff) | (odd * 3 & 0x00ff00ff) << 8;
}

// TQ1_0   0               48   52  54
//         | q             | qh | d |
//
//   A byte v holds five digits in base 3, as v/256: digit n is t(v, n) = (((v * 3^n) mod 256) * 3) >> 8.
//   y[32n + m]       = (t(q[m], n) - 1) * d           n < 5, m < 32
//   y[160 + 16n + m] = (t(q[32 + m], n) - 1) * d      n < 5, m < 16
//   y[240 + 4n + m]  = (t(qh[m], n) - 1) * d          n < 4, m < 4
template <class Sink>
GGUF_INLINE void dequantize(const BlockTQ1_0* b, const Ahead<BlockTQ1_0>&, Sink& y) {
  using Values = simd::Values<Ternary>;
  // Units 0 to 2 are q. Unit 3 is qh, its four bytes multiplied by 1, 3, 9 and 27: its first digit is the
  // result.
  const uint32_t h1 = word32(b->qh), h3 = times3_bytes(h1), h9 = times3_bytes(h3), h27 = times3_bytes(h9);
  const uint64_t low = h1 | static_cast<uint64_t>(h3) << 32, high = h9 | static_cast<uint64_t>(h27) << 32;
  const simd::Scaled<Ternary> number(simd::half(b->d));
  const auto x0 = simd::load_three<2>(b->q, low, high), x1 = simd::times3(x0), x2 = simd::times3(x1),
             x3 = simd::times3(x2), x4 = simd::times3(x3);
  const Values v0(simd::top_trits(x0)), v1(simd::top_trits(x1)), v2(simd::top_trits(x2)),
      v3(simd::top_trits(x3)), v4(simd::top_trits(x4));
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
