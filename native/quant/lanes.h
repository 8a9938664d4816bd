// Vectors for encoders: a search that ggml's reference does for one sub-block after the other, here for
// kLanes of them at once, one to a lane. Each operation on lanes is one of the reference, rounded as there
// (so no fused multiply-adds), and in its order: then the bytes are equal.
//
// Written once, with the vector types of GCC and Clang; what these lack is in a few lines at the end. For
// other compilers a vector is an array.
//
// Included inside the target region of a set, after its header of dequant/simd, which says how many lanes
// there are. Everything is in an unnamed namespace, so that the linker cannot merge functions of two sets.
#pragma once

#include "dequant/simd/common.h"
#if defined(__x86_64__)
#include "dequant/simd/x86_intrinsics.h"
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#ifndef GGUF_SIMD_SET
#error "include the header of an instruction set first"
#endif

namespace gguf {
namespace {
namespace lanes {

constexpr int kLanes = simd::kLanes;

#if defined(__GNUC__)

typedef float Float __attribute__((vector_size(kLanes * 4)));
typedef int32_t Int __attribute__((vector_size(kLanes * 4)));
typedef uint8_t Byte __attribute__((vector_size(kLanes)));
/** What comparisons give: all bits of a lane, or none. */
using Mask = Int;

// (Adding 0 would be an instruction: it changes -0.)
GGUF_INLINE Float splat(float x) {
  return x - Float{};
}
GGUF_INLINE Int splat(int32_t x) {
  return x - Int{};
}

/** Lanes of a where the mask is set, of b elsewhere. */
GGUF_INLINE Float select(Mask mask, Float a, Float b) {
  return mask ? a : b;
}
GGUF_INLINE Int select(Mask mask, Int a, Int b) {
  return mask ? a : b;
}

// Not by select: GCC sees that this is one instruction only if the comparison stands in it.
GGUF_INLINE Int min(Int a, Int b) {
  return a < b ? a : b;
}
GGUF_INLINE Int max(Int a, Int b) {
  return a > b ? a : b;
}

GGUF_INLINE Float to_float(Int x) {
  return __builtin_convertvector(x, Float);
}
/** The whole part of numbers that fit. Of a NaN, an integer whose last byte is 0. */
GGUF_INLINE Int to_int(Float x) {
  return __builtin_convertvector(x, Int);
}
GGUF_INLINE Byte to_bytes(Int x) {
  return __builtin_convertvector(x, Byte);
}

#else

/** A vector where the compiler has none. */
template <class T>
struct Array {
  T lane[kLanes];

  GGUF_INLINE T& operator[](int i) { return lane[i]; }
  GGUF_INLINE T operator[](int i) const { return lane[i]; }
};
using Float = Array<float>;
using Int = Array<int32_t>;
using Byte = Array<uint8_t>;
using Mask = Int;

#define GGUF_LANES_OPERATOR(T, R, op, expression)            \
  GGUF_INLINE Array<R> operator op(Array<T> a, Array<T> b) { \
    Array<R> r;                                              \
    for (int i = 0; i < kLanes; ++i) {                       \
      const T x = a.lane[i], y = b.lane[i];                  \
      r.lane[i] = expression;                                \
    }                                                        \
    return r;                                                \
  }
GGUF_LANES_OPERATOR(float, float, +, x + y)
GGUF_LANES_OPERATOR(float, float, -, x - y)
GGUF_LANES_OPERATOR(float, float, *, x* y)
GGUF_LANES_OPERATOR(float, float, /, x / y)
GGUF_LANES_OPERATOR(float, int32_t, <, x < y ? -1 : 0)
GGUF_LANES_OPERATOR(float, int32_t, >, x > y ? -1 : 0)
GGUF_LANES_OPERATOR(float, int32_t, <=, x <= y ? -1 : 0)
GGUF_LANES_OPERATOR(float, int32_t, >=, x >= y ? -1 : 0)
GGUF_LANES_OPERATOR(float, int32_t, !=, x != y ? -1 : 0)
GGUF_LANES_OPERATOR(float, int32_t, ==, x == y ? -1 : 0)
GGUF_LANES_OPERATOR(int32_t, int32_t, +, x + y)
GGUF_LANES_OPERATOR(int32_t, int32_t, -, x - y)
GGUF_LANES_OPERATOR(int32_t, int32_t, &, x& y)
GGUF_LANES_OPERATOR(int32_t, int32_t, |, x | y)
GGUF_LANES_OPERATOR(int32_t, int32_t, ^, x ^ y)
GGUF_LANES_OPERATOR(int32_t, int32_t, <, x < y ? -1 : 0)
GGUF_LANES_OPERATOR(int32_t, int32_t, >, x > y ? -1 : 0)
GGUF_LANES_OPERATOR(int32_t, int32_t, !=, x != y ? -1 : 0)
GGUF_LANES_OPERATOR(int32_t, int32_t, ==, x == y ? -1 : 0)
#undef GGUF_LANES_OPERATOR

GGUF_INLINE Array<int32_t> operator~(Array<int32_t> a) {
  for (int32_t& x : a.lane) x = ~x;
  return a;
}
GGUF_INLINE Array<int32_t> operator<<(Array<int32_t> a, int n) {
  for (int32_t& x : a.lane) x = static_cast<int32_t>(static_cast<uint32_t>(x) << n);
  return a;
}
GGUF_INLINE Array<int32_t> operator>>(Array<int32_t> a, int n) {
  for (int32_t& x : a.lane) x >>= n;
  return a;
}

template <class T>
GGUF_INLINE Array<T>& operator+=(Array<T>& a, Array<T> b) {
  return a = a + b;
}

template <class T>
GGUF_INLINE Array<T> fill(T x) {
  Array<T> r;
  for (int i = 0; i < kLanes; ++i) r.lane[i] = x;
  return r;
}
GGUF_INLINE Float splat(float x) {
  return fill(x);
}
GGUF_INLINE Int splat(int32_t x) {
  return fill(x);
}

template <class T>
GGUF_INLINE Array<T> select(Mask mask, Array<T> a, Array<T> b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] = mask.lane[i] != 0 ? a.lane[i] : b.lane[i];
  return a;
}

GGUF_INLINE Int min(Int a, Int b) {
  return select(a < b, a, b);
}
GGUF_INLINE Int max(Int a, Int b) {
  return select(a > b, a, b);
}

template <class To, class T>
GGUF_INLINE Array<To> convert(Array<T> x) {
  Array<To> r;
  for (int i = 0; i < kLanes; ++i) r.lane[i] = static_cast<To>(x.lane[i]);
  return r;
}
GGUF_INLINE Float to_float(Int x) {
  return convert<float>(x);
}
GGUF_INLINE Int to_int(Float x) {
  return convert<int32_t>(x);
}
GGUF_INLINE Byte to_bytes(Int x) {
  return convert<uint8_t>(x);
}

#endif

GGUF_INLINE Float load(const float* x) {
  Float r;
  std::memcpy(&r, x, sizeof r);
  return r;
}
GGUF_INLINE Int load(const int32_t* x) {
  Int r;
  std::memcpy(&r, x, sizeof r);
  return r;
}
GGUF_INLINE void store(float* to, Float x) {
  std::memcpy(to, &x, sizeof x);
}
GGUF_INLINE void store(int32_t* to, Int x) {
  std::memcpy(to, &x, sizeof x);
}
GGUF_INLINE void store(uint8_t* to, Byte x) {
  std::memcpy(to, &x, sizeof x);
}

GGUF_INLINE Int bits_of(Float x) {
  Int r;
  std::memcpy(&r, &x, sizeof r);
  return r;
}
GGUF_INLINE Float float_of(Int bits) {
  Float r;
  std::memcpy(&r, &bits, sizeof r);
  return r;
}

GGUF_INLINE Float abs(Float x) {
  return float_of(bits_of(x) & splat(0x7fffffff));
}
GGUF_INLINE Float negated(Float x) {
  return float_of(bits_of(x) ^ splat(INT32_MIN));
}

/** b unless a is less: the order decides about NaN, and which of two zeros. */
GGUF_INLINE Float min(Float a, Float b) {
  return select(a < b, a, b);
}
GGUF_INLINE Float max(Float a, Float b) {
  return select(a > b, a, b);
}
GGUF_INLINE Int clamp(Int x, int32_t least, int32_t most) {
  return max(splat(least), min(splat(most), x));
}

/** ggml's rounding to the nearest integer, halves to even. Only of numbers below 2^22 in magnitude; of others
 * it makes what ggml makes of them. A NaN becomes 0. */
GGUF_INLINE Int nearest_int(Float x) {
  return (bits_of(x + splat(12582912.0f)) & splat(0x7fffff)) - splat(0x400000);
}
GGUF_INLINE int32_t nearest_int(float x) {
  return static_cast<int32_t>(bits_of_float(x + 12582912.0f) & 0x7fffff) - 0x400000;
}

// Templates, so that of each only the branch for the set's vectors is compiled.

template <class Mask>
GGUF_INLINE bool any(Mask mask) {
#if defined(__x86_64__) && defined(__GNUC__)
  if constexpr (kLanes == 16) {
    const auto m = reinterpret_cast<__m512i>(mask);
    return _mm512_test_epi32_mask(m, m) != 0;
  } else if constexpr (kLanes == 8) {
    const auto m = reinterpret_cast<__m256i>(mask);
    return _mm256_testz_si256(m, m) == 0;
  }
#endif
  uint64_t words[kLanes / 2], all = 0;
  std::memcpy(words, &mask, sizeof words);
  for (const uint64_t word : words) all |= word;
  return all != 0;
}

template <class Float>
GGUF_INLINE Float sqrt(Float x) {
#if defined(__x86_64__) && defined(__GNUC__)
  if constexpr (kLanes == 16) {
    return _mm512_sqrt_ps(x);
  } else if constexpr (kLanes == 8) {
    return _mm256_sqrt_ps(x);
  } else {
    return _mm_sqrt_ps(x);
  }
#elif defined(__aarch64__) && defined(__GNUC__)
  return vsqrtq_f32(x);
#elif defined(__wasm_simd128__)
  return wasm_f32x4_sqrt(x);
#else
  for (int i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}

#if defined(__GNUC__)
/** Lanes of a and b by turns, from their first or from their second half. */
template <int kFrom, int... I>
GGUF_INLINE Float interleave(Float a, Float b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (kFrom + I / 2 + I % 2 * kLanes)...);
}
#endif

/** Column c of kLanes rows, `stride` numbers apart, to lanes of `columns[c]`: kLanes columns. */
GGUF_INLINE void transpose(const float* rows, ptrdiff_t stride, Float* columns) {
#if defined(__GNUC__)
  // Row r and row r + kLanes / 2 interleaved, as often as a lane's number has bits, turns numbers around.
  constexpr std::make_integer_sequence<int, kLanes> kEach;
  Float from[kLanes], to[kLanes];
  GGUF_UNROLL
  for (int r = 0; r < kLanes; ++r) from[r] = load(rows + r * stride);
  GGUF_UNROLL
  for (int step = 1; step < kLanes; step *= 2) {
    GGUF_UNROLL
    for (int r = 0; r < kLanes / 2; ++r) {
      to[2 * r] = interleave<0>(from[r], from[r + kLanes / 2], kEach);
      to[2 * r + 1] = interleave<kLanes / 2>(from[r], from[r + kLanes / 2], kEach);
    }
    GGUF_UNROLL
    for (int r = 0; r < kLanes; ++r) from[r] = to[r];
  }
  GGUF_UNROLL
  for (int c = 0; c < kLanes; ++c) columns[c] = from[c];
#else
  for (int c = 0; c < kLanes; ++c) {
    for (int r = 0; r < kLanes; ++r) columns[c][r] = rows[r * stride + c];
  }
#endif
}

// ---- two vectors

template <class V>
struct MaskOf {
  using Type = Mask;
};

/** Two vectors that are worked on together: each operation waits for the one before, and meanwhile the other
 * vector's can be done. */
template <class V>
struct Pair {
  V a, b;

  GGUF_INLINE Pair() = default;
  GGUF_INLINE Pair(V both) : a(both), b(both) {}
  GGUF_INLINE Pair(V first, V second) : a(first), b(second) {}
  // Written out, because GCC copies a struct of vectors through memory, in pieces.
  GGUF_INLINE Pair(const Pair& x) : a(x.a), b(x.b) {}
  GGUF_INLINE Pair& operator=(const Pair& x) {
    a = x.a;
    b = x.b;
    return *this;
  }

#define GGUF_PAIR_OPERATOR(op, R) \
  GGUF_INLINE friend R operator op(const Pair& x, const Pair& y) { return {x.a op y.a, x.b op y.b}; }
  using Masks = Pair<typename MaskOf<V>::Type>;
  GGUF_PAIR_OPERATOR(+, Pair)
  GGUF_PAIR_OPERATOR(-, Pair)
  GGUF_PAIR_OPERATOR(*, Pair)
  GGUF_PAIR_OPERATOR(/, Pair)
  GGUF_PAIR_OPERATOR(&, Pair)
  GGUF_PAIR_OPERATOR(|, Pair)
  GGUF_PAIR_OPERATOR(<, Masks)
  GGUF_PAIR_OPERATOR(>, Masks)
  GGUF_PAIR_OPERATOR(==, Masks)
  GGUF_PAIR_OPERATOR(!=, Masks)
#undef GGUF_PAIR_OPERATOR
  GGUF_INLINE Pair& operator+=(const Pair& y) {
    a = a + y.a;
    b = b + y.b;
    return *this;
  }
};
template <class V>
struct MaskOf<Pair<V>> {
  using Type = typename Pair<V>::Masks;
};
using Float2 = Pair<Float>;

template <class M, class V>
GGUF_INLINE Pair<V> select(const Pair<M>& mask, const Pair<V>& x, const Pair<V>& y) {
  return {select(mask.a, x.a, y.a), select(mask.b, x.b, y.b)};
}
template <class V>
GGUF_INLINE Pair<V> min(const Pair<V>& x, const Pair<V>& y) {
  return {min(x.a, y.a), min(x.b, y.b)};
}
template <class V>
GGUF_INLINE Pair<V> max(const Pair<V>& x, const Pair<V>& y) {
  return {max(x.a, y.a), max(x.b, y.b)};
}
template <class V>
GGUF_INLINE Pair<V> clamp(const Pair<V>& x, int32_t least, int32_t most) {
  return {clamp(x.a, least, most), clamp(x.b, least, most)};
}
template <class V>
GGUF_INLINE Pair<V> abs(const Pair<V>& x) {
  return {abs(x.a), abs(x.b)};
}
template <class V>
GGUF_INLINE Pair<V> negated(const Pair<V>& x) {
  return {negated(x.a), negated(x.b)};
}
template <class V>
GGUF_INLINE Pair<V> sqrt(const Pair<V>& x) {
  return {sqrt(x.a), sqrt(x.b)};
}
template <class V>
GGUF_INLINE auto to_float(const Pair<V>& x) {
  return Pair<decltype(to_float(x.a))>(to_float(x.a), to_float(x.b));
}
template <class V>
GGUF_INLINE auto nearest_int(const Pair<V>& x) {
  return Pair<decltype(nearest_int(x.a))>(nearest_int(x.a), nearest_int(x.b));
}
template <class V>
GGUF_INLINE bool any(const Pair<V>& mask) {
  return any(mask.a | mask.b);
}

/** Integers of as many lanes as V. */
template <class V>
using Integers = decltype(nearest_int(V()));

/** One number in all lanes of V. */
template <class V, class Number>
GGUF_INLINE V all(Number x) {
  return V(splat(x));
}

/** The integer from `least` to `most` that is nearest to x, however large x is. */
template <class V>
GGUF_INLINE V nearest_between(const V& x, int32_t least, int32_t most) {
  constexpr float kShift = 12582912.0f;
  const auto shifted = [&](int32_t n) GGUF_INLINE_LAMBDA { return all<V>(kShift + static_cast<float>(n)); };
  return min(max(x + all<V>(kShift), shifted(least)), shifted(most)) - all<V>(kShift);
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
