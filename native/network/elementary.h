// e^x, tanh, erf as sequences of operations of binary32: docs/sums.md has them. The polynomials have the
// least possible largest error.
#pragma once

#include "network/sixteen.h"

namespace gguf {
namespace {
namespace lanes {

GGUF_INLINE Float power_of_two(Int n) {
  return float_of((n + splat(127)) << 23);
}

/** y * 2^n, exact but for the last step: n is from -150 to 129. */
GGUF_INLINE Float scaled(Float y, Int n) {
  const Int half = n >> 1;
  return (y * power_of_two(half)) * power_of_two(n - half);
}
template <class V, class N>
GGUF_INLINE Pair<V> scaled(const Pair<V>& y, const Pair<N>& n) {
  return {scaled(y.a, n.a), scaled(y.b, n.b)};
}

/** v with the sign of x. */
GGUF_INLINE Float with_sign(Float v, Float x) {
  return float_of((bits_of(v) & splat(0x7fffffff)) | (bits_of(x) & splat(INT32_MIN)));
}
template <class V>
GGUF_INLINE Pair<V> with_sign(const Pair<V>& v, const Pair<V>& x) {
  return {with_sign(v.a, x.a), with_sign(v.b, x.b)};
}

/** +0 for numbers below 0, others as they are: -0 and NaN, too. By bits, since Clang makes one instruction
 * for WebAssembly of a comparison of numbers with 0, which loses the sign of -0. */
GGUF_INLINE Float without_negative(Float x) {
  constexpr int32_t kZero = INT32_MIN, kInfinity = -0x800000;  // the bits of -0, of -infinity
  const Int bits = bits_of(x);
  const Mask is_below = (bits > splat(kZero)) & (bits < splat(kInfinity + 1));
  return float_of(bits & ~is_below);
}
template <class V>
GGUF_INLINE Pair<V> without_negative(const Pair<V>& x) {
  return {without_negative(x.a), without_negative(x.b)};
}

/** c[0] + c[1] x + c[2] x^2 ... */
template <class V, int n>
GGUF_INLINE V polynomial(const V& x, const float (&c)[n]) {
  V sum = all<V>(c[n - 1]);
  GGUF_UNROLL
  for (int i = n - 2; i >= 0; --i) sum = sum * x + all<V>(c[i]);
  return sum;
}

/** Within 1.1 units in the last place. */
template <class V>
GGUF_INLINE V exp(V x) {
  // Beyond these, results are 0 and infinity.
  x = min(all<V>(89.0f), max(all<V>(-104.0f), x));
  const auto n = nearest_int(x * all<V>(1.4426950216293335f));
  const V whole = to_float(n);
  // ln(2) in two parts; the first has so few bits that its product is exact.
  const V r = (x - whole * all<V>(0.693359375f)) - whole * all<V>(-0.00021219444170128554f);
  constexpr float kRest[] = {0.4999999403953552f, 0.1666651964187622f, 0.041668400168418884f,
                             0.00836885068565607f, 0.0013814320554956794f};
  return scaled(polynomial(r, kRest) * (r * r) + r + all<V>(1.0f), n);
}

template <class V>
GGUF_INLINE V tanh(const V& x) {
  const V a = abs(x), square = a * a;
  constexpr float kRest[] = {-0.3333328366279602f, 0.13331490755081177f, -0.05374349653720856f,
                             0.02065058797597885f, -0.0057170456275343895f};
  const V small = polynomial(square, kRest) * square * a + a;
  const V large = all<V>(1.0f) - all<V>(2.0f) / (exp(all<V>(2.0f) * a) + all<V>(1.0f));
  return with_sign(select(a < all<V>(0.625f), small, large), x);
}

template <class V>
GGUF_INLINE V erf(const V& x) {
  const V a = abs(x);
  constexpr float kSmall[] = {0.12837916612625122f,   -0.37612631916999817f, 0.11283686012029648f,
                              -0.026858851313591003f, 0.005199600011110306f, -0.0008125807507894933f,
                              0.00008296612941194326f};
  constexpr float kLarge[] = {1.128504753112793f,    0.6357510685920715f,   0.10521844029426575f,
                              -0.02286197803914547f, 0.003206180641427636f, -0.00021291519806254655f};
  const V small = polynomial(a * a, kSmall) * a + a;
  const V t = min(all<V>(4.0f), a);
  const V large = all<V>(1.0f) - exp(negated(polynomial(t, kLarge) * t));
  return with_sign(select(a < all<V>(0.9375f), small, large), x);
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
