// Levels as bytes, and exact sums of their products with int8, in WebAssembly's SIMD: products of bytes in 16
// bits, two of which are added in 32. Where a tile takes levels, they have 16 bits: one instruction
// multiplies these and adds two products, which pays for twice as many bytes.
#pragma once

#include "dequant/simd/wasm.h"

namespace gguf {
namespace {
namespace simd {

constexpr int kByteKinds = 2;
constexpr bool kMultipliesCodesInKernels = true;
using CodeTransposer = void;
/** 1: levels that have seven bits once kNarrowBias is added. */
template <class Levels>
constexpr int kByteKind = least_level<Levels>() >= -kNarrowBias && greatest_level<Levels>() < kNarrowBias;
/** What Values make of codes. */
template <class Levels>
constexpr int kByteBias = 0;
template <int kKind>
#if defined(__wasm_relaxed_simd__)
constexpr int kLevelBytes = 1;
constexpr bool kSignedTiles = false;
#else
constexpr int kLevelBytes = 2;
constexpr bool kSignedTiles = true;
#endif
constexpr int kRowRegisters = 2;
constexpr int kByteVectors = 4;

// ---- bytes -----------------------------------------------------------------------------------------------

struct Bytes32 {
  v128_t a, b;
};

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const Values<Levels>& a, int i, const Values<Levels>& b, int k) {
  return {a.unit(i), b.unit(k)};
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const SignedBytes& v, int unit) {
  return {wasm_v128_load(v.p + 16 * unit), wasm_v128_load(v.p + 16 * unit + 16)};
}

template <class Levels>
GGUF_INLINE void store_bytes(uint8_t* to, const Bytes32& v) {
  wasm_v128_store(to, wasm_i16x8_extend_low_i8x16(v.a));
  wasm_v128_store(to + 16, wasm_i16x8_extend_high_i8x16(v.a));
  wasm_v128_store(to + 32, wasm_i16x8_extend_low_i8x16(v.b));
  wasm_v128_store(to + 48, wasm_i16x8_extend_high_i8x16(v.b));
}

// ---- one row and one vector ------------------------------------------------------------------------------

/** The products of 16 bytes, four of them in each lane. */
GGUF_INLINE v128_t dot_16(v128_t w, const int8_t* p) {
  const v128_t x = wasm_v128_load(p);
  return wasm_i32x4_add(wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extmul_low_i8x16(w, x)),
                        wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extmul_high_i8x16(w, x)));
}

GGUF_INLINE v128_t add_pairs(v128_t a, v128_t b) {
  return wasm_i32x4_add(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7));
}

GGUF_INLINE v128_t add_fours(v128_t a, v128_t b, v128_t c, v128_t d) {
  return add_pairs(add_pairs(a, b), add_pairs(c, d));
}

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const Bytes32& c, const Bytes32& d,
                              const DotColumns<kRun>& x) {
  const auto first = [&](const Bytes32& w, int k) { return dot_16(w.a, x.first_half(k)); };
  const auto last = [&](const Bytes32& w, int k) { return dot_16(w.b, x.last_half(k)); };
  if constexpr (kRun == 32) {
    const auto both = [&](const Bytes32& w, int k) { return wasm_i32x4_add(first(w, k), last(w, k)); };
    return {add_fours(both(a, 0), both(b, 1), both(c, 2), both(d, 3))};
  } else {
    return {add_fours(first(a, 0), first(b, 1), first(c, 2), first(d, 3)),
            add_fours(last(a, 0), last(b, 1), last(c, 2), last(d, 3))};
  }
}

GGUF_INLINE Ints8 zip(const DotSums<16>& v) {
  return {wasm_i32x4_shuffle(v.lower, v.upper, 0, 4, 1, 5), wasm_i32x4_shuffle(v.lower, v.upper, 2, 6, 3, 7)};
}

GGUF_INLINE void sixteen_sums(const DotSums<16>& a, const DotSums<16>& b, Ints8 (&sums)[2]) {
  sums[0] = zip(a);
  sums[1] = zip(b);
}

GGUF_INLINE Ints8 add(const Ints8& v, const int32_t* p) {
  return {wasm_i32x4_add(v.a, wasm_v128_load(p)), wasm_i32x4_add(v.b, wasm_v128_load(p + 4))};
}

GGUF_INLINE Floats8 floats_8(float a, float b, float c, float d, float e, float f, float g, float h) {
  return {wasm_f32x4_make(a, b, c, d), wasm_f32x4_make(e, f, g, h)};
}

GGUF_INLINE Floats8 to_floats(const Ints8& v) {
  return {wasm_f32x4_convert_i32x4(v.a), wasm_f32x4_convert_i32x4(v.b)};
}

GGUF_INLINE float sum(const Floats8& v) {
  const v128_t four = wasm_f32x4_add(v.a, v.b);
  const v128_t two = wasm_f32x4_add(four, upper_pair(four));
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

GGUF_INLINE v128_t keep_lanes(v128_t a, int first, int end) {
  const v128_t lane = wasm_i32x4_make(0, 1, 2, 3);
  const v128_t kept =
      wasm_v128_and(wasm_i32x4_ge(lane, wasm_i32x4_splat(first)), wasm_i32x4_lt(lane, wasm_i32x4_splat(end)));
  return wasm_v128_and(a, kept);
}

GGUF_INLINE Floats8 keep(const Floats8& v, int first, int end) {
  return {keep_lanes(v.a, first, end), keep_lanes(v.b, first - 4, end - 4)};
}

// ---- rows and vectors ------------------------------------------------------------------------------------

struct IntLanes {
  v128_t x;
};

GGUF_INLINE IntLanes broadcast_int(const void* p) {
  return {wasm_v128_load32_splat(p)};
}

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  GGUF_UNROLL
  for (int i = 0; i < kRun * kLevelBytes<kKind> / 4; ++i) {
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const v128_t word = broadcast_int(x + 4 * (i * kVectors + v)).x;
      GGUF_UNROLL
      for (int k = 0; k < kRowRegisters; ++k) {
        const v128_t rows = wasm_v128_load(w + 16 * (i * kRowRegisters + k));
#if defined(__wasm_relaxed_simd__)
        sums[v][k].x = __builtin_wasm_relaxed_dot_i8x16_i7x16_add_s_i32x4(word, rows, sums[v][k].x);
#else
        sums[v][k].x = wasm_i32x4_add(sums[v][k].x, wasm_i32x4_dot_i16x8(rows, word));
#endif
      }
    }
  }
}

GGUF_INLINE Lanes to_lanes(const IntLanes& a) {
  return {wasm_f32x4_convert_i32x4(a.x)};
}

GGUF_INLINE Lanes broadcast(const void* p) {
  return {broadcast_int(p).x};
}

template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  const auto step = static_cast<size_t>(stride);
  GGUF_UNROLL
  for (int k = 0; k < kRowRegisters; ++k, to += 16) {
    GGUF_UNROLL
    for (int i = 0; i < kWords; i += 4) {
      const uint8_t* const from = rows + 4 * k * step + 4 * i;
      const v128_t a = wasm_v128_load(from), b = wasm_v128_load(from + step),
                   c = wasm_v128_load(from + 2 * step), d = wasm_v128_load(from + 3 * step);
      const v128_t ab = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), cd = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5);
      const v128_t ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7),
                   cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
      constexpr int kStep = 16 * kRowRegisters;
      wasm_v128_store(to + kStep * i, wasm_i64x2_shuffle(ab, cd, 0, 2));
      wasm_v128_store(to + kStep * (i + 1), wasm_i64x2_shuffle(ab, cd, 1, 3));
      wasm_v128_store(to + kStep * (i + 2), wasm_i64x2_shuffle(ab_high, cd_high, 0, 2));
      wasm_v128_store(to + kStep * (i + 3), wasm_i64x2_shuffle(ab_high, cd_high, 1, 3));
    }
  }
}

}  // namespace simd
}  // namespace
}  // namespace gguf

#include "dequant/simd/dots_of_units.h"
#include "dequant/simd/rounding.h"
