// Sixteen numbers at a time, in as many registers as a set needs for them, for functions of vectors of any
// length. Sums have sixteen parts: number i of a vector goes to part i mod 16.
#pragma once

#include "quant/lanes.h"

namespace gguf {
namespace {
namespace lanes {

using Sixteen =
    std::conditional_t<kLanes == 16, Float, std::conditional_t<kLanes == 8, Pair<Float>, Pair<Pair<Float>>>>;
static_assert(kLanes == 4 || kLanes == 8 || kLanes == 16, "");

template <class V>
constexpr int kCount = kLanes;
template <class V>
constexpr int kCount<Pair<V>> = 2 * kCount<V>;

GGUF_INLINE void load_to(Float& r, const float* x) {
  r = load(x);
}
template <class V>
GGUF_INLINE void load_to(Pair<V>& r, const float* x) {
  load_to(r.a, x);
  load_to(r.b, x + kCount<V>);
}
GGUF_INLINE Sixteen load16(const float* x) {
  Sixteen r;
  load_to(r, x);
  return r;
}
template <class V>
GGUF_INLINE void store(float* to, const Pair<V>& x) {
  store(to, x.a);
  store(to + kCount<V>, x.b);
}

GGUF_INLINE Sixteen all16(float x) {
  return all<Sixteen>(x);
}

/** Sixteen numbers that a set has loaded and converted. */
GGUF_INLINE Sixteen sixteen_of(const simd::Floats16& x) {
  static_assert(sizeof(Sixteen) == sizeof x, "");
  Sixteen r;
  std::memcpy(static_cast<void*>(&r), &x, sizeof r);
  return r;
}

/** The sum of sixteen parts: eight are added to eight, four to four, two to two, one to one. */
GGUF_INLINE float fold(const Sixteen& x) {
  alignas(64) float parts[16];
  store(parts, x);
  return simd::sum(simd::load_f32(parts));
}

/** The last numbers of a vector, completed with others. */
struct Rest {
  alignas(64) float x[16];

  GGUF_INLINE Rest(const float* from, uint64_t n, float others) {
    for (float& number : x) number = others;
    std::memcpy(x, from, static_cast<size_t>(n) * sizeof *x);
  }
  GGUF_INLINE void copy(float* to, uint64_t n) const {
    std::memcpy(to, x, static_cast<size_t>(n) * sizeof *x);
  }
};

// Lambdas say that they capture, even if there is nothing: others have a pointer to a function as well, which
// GCC compiles outside of the target region.

/** out[i] = f(x[i]), sixteen at a time. */
template <class F>
GGUF_INLINE void map(const float* x, uint64_t n, float* out, F f) {
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, f(load16(x + i)));
  if (i == n) return;
  Rest rest(x + i, n - i, 0);
  store(rest.x, f(load16(rest.x)));
  rest.copy(out + i, n - i);
}

/** out[i] = f(x[i], y[i]). */
template <class F>
GGUF_INLINE void map(const float* x, const float* y, uint64_t n, float* out, F f) {
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, f(load16(x + i), load16(y + i)));
  if (i == n) return;
  Rest rest(x + i, n - i, 0);
  const Rest other(y + i, n - i, 0);
  store(rest.x, f(load16(rest.x), load16(other.x)));
  rest.copy(out + i, n - i);
}

/** The sum of what f makes of each number. f makes 0 of `others`. */
template <class F>
GGUF_INLINE float sum_of(const float* x, uint64_t n, float others, F f) {
  Sixteen parts = all16(0);
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) parts = parts + f(load16(x + i));
  if (i == n) return fold(parts);
  const Rest rest(x + i, n - i, others);
  return fold(parts + f(load16(rest.x)));
}

/** The largest number; a NaN does not count. */
GGUF_INLINE float max_of(const float* x, uint64_t n) {
  Sixteen most = all16(-INFINITY);
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) most = max(load16(x + i), most);
  alignas(64) float parts[16];
  store(parts, most);
  float largest = -INFINITY;
  for (const float part : parts) largest = part > largest ? part : largest;
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
