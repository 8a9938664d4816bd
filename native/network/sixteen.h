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

/** Sixteen numbers of a vector from number i on: in place or, at its end, a copy that is completed with
 * others. */
struct Piece {
  const float* x;
  uint64_t n;

  GGUF_INLINE Piece(const float* from, uint64_t i, uint64_t length, float others)
      : x(from + i), n(std::min<uint64_t>(length - i, 16)) {
    if (n == 16) return;
    for (float& number : copy_) number = others;
    std::memcpy(copy_, x, static_cast<size_t>(n) * sizeof *x);
    x = copy_;
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  /** The first n of sixteen numbers. */
  GGUF_INLINE void store_to(float* to, const Sixteen& v) {
    if (n == 16) return store(to, v);
    store(copy_, v);
    std::memcpy(to, copy_, static_cast<size_t>(n) * sizeof *to);
  }

 private:
  alignas(64) float copy_[16];
};

// Lambdas say that they capture, even if there is nothing: others have a pointer to a function as well, which
// GCC compiles outside of the target region.

/** out[i] = f(x[i]), sixteen at a time. */
template <class F>
GGUF_INLINE void map(const float* x, uint64_t n, float* out, F f) {
  for (uint64_t i = 0; i < n; i += 16) {
    Piece piece(x, i, n, 0);
    piece.store_to(out + i, f(load16(piece.x)));
  }
}

/** out[i] = f(x[i], y[i]). */
template <class F>
GGUF_INLINE void map(const float* x, const float* y, uint64_t n, float* out, F f) {
  for (uint64_t i = 0; i < n; i += 16) {
    Piece piece(x, i, n, 0);
    const Piece other(y, i, n, 0);
    piece.store_to(out + i, f(load16(piece.x), load16(other.x)));
  }
}

/** The sum of what f makes of each number. f makes 0 of `others`. */
template <class F>
GGUF_INLINE float sum_of(const float* x, uint64_t n, float others, F f) {
  Sixteen parts = all16(0);
  for (uint64_t i = 0; i < n; i += 16) {
    const Piece piece(x, i, n, others);
    parts = parts + f(load16(piece.x));
  }
  return fold(parts);
}

/** The largest number; a NaN does not count. */
GGUF_INLINE float max_of(const float* x, uint64_t n) {
  Sixteen most = all16(-INFINITY);
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) most = max(load16(x + i), most);
  if (i < n) most = max(load16(Piece(x, i, n, -INFINITY).x), most);
  alignas(64) float parts[16];
  store(parts, most);
  for (int h = 8; h > 0; h /= 2) {
    for (int k = 0; k < h; ++k) parts[k] = parts[k] > parts[k + h] ? parts[k] : parts[k + h];
  }
  return parts[0];
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
