// WebAssembly's 128-bit SIMD. Without its relaxed instructions, whose results may differ between machines.
#pragma once

#include <wasm_simd128.h>

#include "dequant/simd/common.h"

#define GGUF_SIMD_SET

namespace gguf {
namespace {
namespace simd {

constexpr const char* kName = "wasm";
constexpr bool kStreams = false;
constexpr bool kMultipliesInKernels = false;
constexpr int kPairRegisters = 1;

constexpr int kLanes = 4;
constexpr int kTileSums = 6;
struct Lanes {
  v128_t x;
};

using Register = v128_t;
using IntRegister = v128_t;

GGUF_INLINE Register load_16(const uint8_t* p) {
  return wasm_v128_load(p);
}

GGUF_INLINE Register select_bits(uint8_t mask, Register a, Register b) {
  return wasm_v128_bitselect(a, b, wasm_u8x16_splat(mask));
}

GGUF_INLINE Register nibble_run(const uint8_t* p) {
  const v128_t bytes = wasm_v128_load64_splat(p);
  return wasm_v128_bitselect(bytes, wasm_u16x8_shr(bytes, 4), wasm_u64x2_make(~uint64_t{0}, 0));
}

/** There is no shift by a number per byte; shifts of all bytes are selected instead. */
template <int kUnit>
GGUF_INLINE Register unpack_unit(Register x) {
  constexpr int k = 4 * kUnit;
  const v128_t bytes = wasm_i8x16_shuffle(x, x, k, k, k, k, k + 1, k + 1, k + 1, k + 1, k + 2, k + 2, k + 2,
                                          k + 2, k + 3, k + 3, k + 3, k + 3);
  const v128_t odd = wasm_u16x8_splat(0xff00), upper = wasm_u32x4_splat(0xffff0000);
  const v128_t pairs = wasm_v128_bitselect(wasm_u16x8_shr(bytes, 2), bytes, odd);
  return wasm_v128_bitselect(wasm_u16x8_shr(pairs, 4), pairs, upper);
}

GGUF_INLINE uint64_t spread_source(uint64_t bits) {
  return bits;
}

template <int kUnit>
GGUF_INLINE Register spread_unit(uint64_t source) {
  const v128_t bit = wasm_u64x2_splat(0x8040201008040201);
  const v128_t both = wasm_u16x8_splat(static_cast<uint16_t>(source >> 16 * kUnit));
  const v128_t bytes = wasm_i8x16_shuffle(both, both, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  return wasm_i8x16_eq(wasm_v128_and(bytes, bit), bit);
}

GGUF_INLINE Register row_pair(const uint64_t* book, const uint16_t* rows) {
  return wasm_v128_load64_lane(book + rows[1], wasm_v128_load64_zero(book + rows[0]), 1);
}

GGUF_INLINE Register four_rows(const uint32_t* book, const uint16_t* rows) {
  v128_t x = wasm_v128_load32_zero(book + rows[0]);
  x = wasm_v128_load32_lane(book + rows[1], x, 1);
  x = wasm_v128_load32_lane(book + rows[2], x, 2);
  return wasm_v128_load32_lane(book + rows[3], x, 3);
}

/** Bits from the neighbouring byte are undefined in a code, so wider lanes are shifted: x86 has no shift of
 * bytes. */
template <int N>
GGUF_INLINE Register shift_unit(Register x) {
  if constexpr (N > 0) return wasm_u16x8_shr(x, N);
  if constexpr (N < 0) return wasm_i16x8_shl(x, -N);
  return x;
}

/** 3x >> 8 is 0 below 86, 1 below 171, otherwise 2: each comparison that holds is -1. */
GGUF_INLINE Register top_trits_of_unit(Register x) {
  const v128_t one = wasm_u8x16_ge(x, wasm_u8x16_splat(86)), two = wasm_u8x16_ge(x, wasm_u8x16_splat(171));
  return wasm_i8x16_neg(wasm_i8x16_add(one, two));
}

/** Two pairs of binary64 numbers to binary32. */
GGUF_INLINE v128_t demote(v128_t a, v128_t b) {
  const v128_t low = wasm_f32x4_demote_f64x2_zero(a), high = wasm_f32x4_demote_f64x2_zero(b);
  return wasm_i64x2_shuffle(low, high, 0, 2);
}

GGUF_INLINE v128_t upper_pair(v128_t x) {
  return wasm_i64x2_shuffle(x, x, 1, 1);
}

/** a * b + c of two pairs: the exact products and their sums, rounded once, all in binary64. */
struct WideSums {
  v128_t product, addend, sum;
  GGUF_INLINE WideSums(v128_t a, v128_t b, v128_t c)
      : product(wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(a), wasm_f64x2_promote_low_f32x4(b))),
        addend(wasm_f64x2_promote_low_f32x4(c)),
        sum(wasm_f64x2_add(product, addend)) {}

  /** Where a sum lies half-way between two binary32 numbers, unless these are subnormal: all ones. */
  GGUF_INLINE v128_t is_half_way() const {
    return wasm_i64x2_eq(wasm_v128_and(sum, wasm_u64x2_splat(0x1fffffff)), wasm_u64x2_splat(0x10000000));
  }

  /** The sums rounded to odd; see `fused` in scalar.h. */
  GGUF_INLINE v128_t to_odd() const {
    const v128_t added = wasm_f64x2_sub(sum, product);
    const v128_t error = wasm_f64x2_add(wasm_f64x2_sub(product, wasm_f64x2_sub(sum, added)),
                                        wasm_f64x2_sub(addend, added));  // NaN beyond the finite numbers
    const v128_t zero = wasm_f64x2_splat(0), one = wasm_i64x2_splat(1);
    const v128_t up = wasm_f64x2_gt(error, zero), down = wasm_f64x2_lt(error, zero);
    // An even last bit of an inexact sum: one step towards the exact sum, up or down in magnitude.
    const v128_t steps = wasm_v128_andnot(wasm_v128_and(wasm_v128_or(up, down), one), sum);
    const v128_t towards_zero = wasm_v128_xor(up, wasm_f64x2_gt(sum, zero));
    return wasm_i64x2_add(sum, wasm_i64x2_sub(wasm_v128_xor(steps, towards_zero), towards_zero));
  }
};

/**
 * a * b + c, rounded once. No instruction does it with the same bits on every machine. Rounding the sum to
 * binary64 and then to binary32 gives another result only if the first rounding ends half-way between two
 * binary32 numbers. That is rare; sums are rounded to odd then, so that the second rounding sees on which
 * side they are.
 */
GGUF_INLINE v128_t fused_lanes(v128_t a, v128_t b, v128_t c) {
  const WideSums low(a, b, c), high(upper_pair(a), upper_pair(b), upper_pair(c));
  const v128_t result = demote(low.sum, high.sum);
  const v128_t is_tiny = wasm_f32x4_lt(wasm_f32x4_abs(result), wasm_f32x4_splat(0x1p-125f));
  const v128_t unsure = wasm_v128_or(wasm_v128_or(low.is_half_way(), high.is_half_way()), is_tiny);
  if (__builtin_expect(wasm_v128_any_true(unsure), 0)) return demote(low.to_odd(), high.to_odd());
  return result;
}

GGUF_INLINE Lanes load_lanes(const float* p) {
  return {wasm_v128_load(p)};
}

GGUF_INLINE void store_lanes(float* p, const Lanes& a) {
  wasm_v128_store(p, a.x);
}

GGUF_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {fused_lanes(a.x, b.x, c.x)};
}

GGUF_INLINE Lanes all_lanes(float c) {
  return {wasm_f32x4_splat(c)};
}

GGUF_INLINE Lanes mul(const Lanes& a, const Lanes& b) {
  return {wasm_f32x4_mul(a.x, b.x)};
}

GGUF_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  return {wasm_f32x4_add(a.x, b.x)};
}

GGUF_INLINE float half(const uint8_t* p) {
  return half_to_float(word16(p));
}

}  // namespace simd
}  // namespace
}  // namespace gguf

#include "dequant/simd/registers128.h"

namespace gguf {
namespace {
namespace simd {

// ---- codes -----------------------------------------------------------------------------------------------

template <int Bits, int Step, int PerWord>
GGUF_INLINE void join_rows(uint16_t* rows, const uint8_t* low, const uint8_t* high) {
  using R = RowFields<Bits, Step, PerWord>;
  v128_t bytes = wasm_u64x2_splat(0);
  if constexpr (R::kBytes == 8) bytes = wasm_v128_load64_zero(high);
  if constexpr (R::kBytes == 4) bytes = wasm_v128_load32_zero(high);
  if constexpr (R::kBytes == 2) bytes = wasm_v128_load16_splat(high);
  const v128_t mask = wasm_u16x8_splat(((1 << Bits) - 1) << 8);
  for (int half = 0; half < 2; ++half) {
    const v128_t words = wasm_i8x16_swizzle(bytes, wasm_v128_load(kRowFields<R>.byte + 16 * half));
    const v128_t at_top = wasm_i16x8_mul(words, wasm_v128_load(kRowFields<R>.factor + 8 * half));
    const v128_t fields = wasm_v128_and(wasm_u16x8_shr(at_top, 8 - Bits), mask);
    wasm_v128_store(rows + 8 * half, wasm_v128_or(wasm_u16x8_load8x8(low + 8 * half), fields));
  }
}

GGUF_INLINE v128_t times3(v128_t x) {
  return wasm_i8x16_add(x, wasm_i8x16_add(x, x));
}

/** Every four of the last sixteen bytes are three times those before. */
template <class To = ToNumbers>
GGUF_INLINE Trits load_trits(const uint8_t* p, To = {}) {
  const v128_t one = wasm_v128_load32_splat(p + 48), three = times3(one), nine = times3(three);
  const v128_t low = wasm_i32x4_shuffle(one, three, 0, 4, 0, 4);
  const v128_t high = wasm_i32x4_shuffle(nine, times3(nine), 0, 4, 0, 4);
  return {wasm_v128_load(p), wasm_v128_load(p + 16), wasm_v128_load(p + 32),
          wasm_i64x2_shuffle(low, high, 0, 2)};
}

GGUF_INLINE Trits times3(const Trits& x) {
  return {times3(x.a), times3(x.b), times3(x.c), times3(x.d)};
}

// ---- floats ----------------------------------------------------------------------------------------------

/**
 * Four binary16 numbers in the low halves of their lanes. Exponent and fraction move to their places in a
 * binary32, whose exponent has another bias; infinities and NaNs have all exponent bits set. A subnormal
 * number becomes one from 2^-14 to 2^-13, and 2^-14 is subtracted, exactly: with subnormal binary32 numbers,
 * processors calculate many times slower.
 */
GGUF_INLINE v128_t halves_to_floats(v128_t x) {
  // Otherwise Clang works on 16-bit lanes, which it then has to widen three times instead of once.
  GGUF_KEEP_IN_REGISTER("r", x);
  const v128_t magnitude = wasm_v128_and(x, wasm_u32x4_splat(0x7fff));
  const v128_t is_special = wasm_i32x4_gt(magnitude, wasm_u32x4_splat(0x7bff));
  const v128_t is_subnormal = wasm_i32x4_lt(magnitude, wasm_u32x4_splat(0x0400));
  const v128_t moved = wasm_i32x4_add(wasm_i32x4_shl(magnitude, 13), wasm_u32x4_splat(0x38000000));
  const v128_t special = wasm_v128_and(is_special, wasm_u32x4_splat(0x7f800000));
  const v128_t added = wasm_v128_and(is_subnormal, wasm_f32x4_splat(0x1p-14f));
  const v128_t value = wasm_f32x4_sub(wasm_v128_or(wasm_v128_or(moved, special), added), added);
  const v128_t sign = wasm_i32x4_shl(wasm_v128_and(x, wasm_u32x4_splat(0x8000)), 16);
  return wasm_v128_or(value, sign);
}

GGUF_INLINE Floats16 load_f16(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = halves_to_floats(wasm_u32x4_load16x4(p + 8 * i));
  return r;
}

GGUF_INLINE Floats16 load_bf16(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = wasm_i32x4_shl(wasm_u32x4_load16x4(p + 8 * i), 16);
  return r;
}

/** Signed bytes, each on top of its own 32-bit lane: 2^24 times their value. */
template <int Unit>
GGUF_INLINE v128_t bytes_on_top(v128_t bytes) {
  constexpr int kNone = -1;  // not found: 0
  constexpr int kFirst = 4 * Unit;
  return wasm_i8x16_swizzle(
      bytes, wasm_i8x16_const(kNone, kNone, kNone, kFirst, kNone, kNone, kNone, kFirst + 1, kNone, kNone,
                              kNone, kFirst + 2, kNone, kNone, kNone, kFirst + 3));
}

/** 2^24 times sixteen signed bytes, exactly. */
GGUF_INLINE Floats16 scaled_int8_to_floats(v128_t bytes) {
  return {{wasm_f32x4_convert_i32x4(bytes_on_top<0>(bytes)), wasm_f32x4_convert_i32x4(bytes_on_top<1>(bytes)),
           wasm_f32x4_convert_i32x4(bytes_on_top<2>(bytes)),
           wasm_f32x4_convert_i32x4(bytes_on_top<3>(bytes))}};
}

GGUF_INLINE Floats16 int8_to_floats(v128_t bytes) {
  const v128_t low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
  return {{wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(low)),
           wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(low)),
           wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(high)),
           wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(high))}};
}

GGUF_INLINE Floats16 load_int8(const void* p) {
  return int8_to_floats(wasm_v128_load(p));
}

GGUF_INLINE Floats16 load_int16(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = wasm_f32x4_convert_i32x4(wasm_i32x4_load16x4(bytes + 8 * i));
  return r;
}

GGUF_INLINE Floats16 load_int32(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = wasm_f32x4_convert_i32x4(wasm_v128_load(bytes + 16 * i));
  return r;
}

GGUF_INLINE Floats16 load_f64(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = demote(wasm_v128_load(p + 32 * i), wasm_v128_load(p + 32 * i + 16));
  return r;
}

GGUF_INLINE Floats16 int8x16(uint64_t low, uint64_t high) {
  return int8_to_floats(wasm_u64x2_make(low, high));
}

GGUF_INLINE Floats16 load_sixes(const uint8_t* p) {
  const Bytes16 bytes = split_sixes(p);
  return int8x16(bytes.low, bytes.high);
}

GGUF_INLINE Floats16 join_sixes(const uint8_t* nibbles, const uint8_t* pairs) {
  return int8x16(joined_sixes(nibbles, pairs), 0);
}

template <int Stride>
GGUF_INLINE Floats16 halves(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 4; ++i, p += 4 * Stride) {
    const v128_t x =
        wasm_u32x4_make(word16(p), word16(p + Stride), word16(p + 2 * Stride), word16(p + 3 * Stride));
    r.x[i] = halves_to_floats(x);
  }
  return r;
}

GGUF_INLINE float sum(const Floats16& a) {
  const v128_t four = wasm_f32x4_add(wasm_f32x4_add(a.x[0], a.x[2]), wasm_f32x4_add(a.x[1], a.x[3]));
  const v128_t two = wasm_f32x4_add(four, upper_pair(four));
  return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

GGUF_INLINE void sums(const float* p, float* y) {
  for (int i = 0; i < 16; ++i) y[i] = sum(load_f32(p + 16 * i));
}

// ---- statistics -------------------------------------------------------------------------------------------

struct Doubles {
  v128_t low, high;
};

struct Counts {
  v128_t x;
};

GGUF_INLINE Doubles load_doubles(const float* p) {
  const v128_t x = wasm_v128_load(p);
  return {wasm_f64x2_promote_low_f32x4(x), wasm_f64x2_promote_low_f32x4(upper_pair(x))};
}

GGUF_INLINE void store_doubles(double* p, const Doubles& a) {
  wasm_v128_store(p, a.low);
  wasm_v128_store(p + 2, a.high);
}

GGUF_INLINE Doubles add(const Doubles& a, const Doubles& b) {
  return {wasm_f64x2_add(a.low, b.low), wasm_f64x2_add(a.high, b.high)};
}

GGUF_INLINE Doubles sub(const Doubles& a, const Doubles& b) {
  return {wasm_f64x2_sub(a.low, b.low), wasm_f64x2_sub(a.high, b.high)};
}

GGUF_INLINE Doubles add_rounded_square(const Doubles& a, const Doubles& c) {
  return add({wasm_f64x2_mul(a.low, a.low), wasm_f64x2_mul(a.high, a.high)}, c);
}

GGUF_INLINE Doubles add_square(const Doubles& a, const Doubles& c) {
  return add_rounded_square(a, c);
}

GGUF_INLINE Doubles magnitude(const Doubles& a) {
  return {wasm_f64x2_abs(a.low), wasm_f64x2_abs(a.high)};
}

/** a > b ? a : b */
GGUF_INLINE Doubles max(const Doubles& a, const Doubles& b) {
  return {wasm_f64x2_pmax(b.low, a.low), wasm_f64x2_pmax(b.high, a.high)};
}

GGUF_INLINE Lanes max_signed(const Lanes& a, const Lanes& b) {
  return {wasm_i32x4_max(a.x, b.x)};
}

GGUF_INLINE Lanes max_unsigned(const Lanes& a, const Lanes& b) {
  return {wasm_u32x4_max(a.x, b.x)};
}

/** What a comparison gives is -1 as an integer. */
GGUF_INLINE Counts count_equal(const Lanes& a, const Lanes& b, const Counts& c) {
  return {wasm_i32x4_sub(c.x, wasm_f32x4_eq(a.x, b.x))};
}

GGUF_INLINE uint32_t total(const Counts& c) {
  return wasm_u32x4_extract_lane(c.x, 0) + wasm_u32x4_extract_lane(c.x, 1) + wasm_u32x4_extract_lane(c.x, 2) +
         wasm_u32x4_extract_lane(c.x, 3);
}

/** The bins of two numbers, if these are in the range. */
GGUF_INLINE v128_t bins_in_range(v128_t x, const BinRange& range) {
  v128_t part = wasm_f64x2_sub(x, wasm_f64x2_splat(range.low));
  part = wasm_f64x2_mul(part, wasm_f64x2_splat(range.scale));
  part = wasm_f64x2_pmax(wasm_f64x2_splat(0), part);
  return wasm_u32x4_trunc_sat_f64x2_zero(wasm_f64x2_pmin(wasm_f64x2_splat(range.last), part));
}

GGUF_INLINE void store_slots(uint32_t* slots, const float* p, const BinRange& range) {
  const v128_t x = wasm_v128_load(p);
  const Doubles wide = load_doubles(p);
  const v128_t bin =
      wasm_i64x2_shuffle(bins_in_range(wide.low, range), bins_in_range(wide.high, range), 0, 2);
  const v128_t is_below = wasm_f32x4_lt(x, wasm_f32x4_splat(range.smallest));
  const v128_t is_above = wasm_f32x4_gt(x, wasm_f32x4_splat(range.greatest));
  const v128_t or_below = wasm_v128_andnot(wasm_i32x4_add(bin, wasm_u32x4_splat(1)), is_below);
  wasm_v128_store(slots, wasm_v128_bitselect(wasm_u32x4_splat(range.n_slots - 1), or_below, is_above));
}

// ---- levels ----------------------------------------------------------------------------------------------

template <class Levels>
GGUF_INLINE v128_t levels_of_unit(v128_t codes) {
  constexpr int kMask = (1 << Levels::kBits) - 1;
  const v128_t code = wasm_v128_and(codes, wasm_u8x16_splat(kMask));
  if constexpr (Levels::kLinear) {
    constexpr auto kFirst = static_cast<int8_t>(Levels::value(0));
    return kFirst == 0 ? code : wasm_i8x16_add(code, wasm_i8x16_splat(kFirst));
  } else {
    static_assert(Levels::kBits <= 4, "swizzle looks up four bits");
    return wasm_i8x16_swizzle(wasm_v128_load(kLevelTable<Levels>.level), code);
  }
}

template <class Levels>
struct Values {
  v128_t a, b, c, d;
  GGUF_INLINE explicit Values(const Codes<Levels::kBits>& codes)
      : a(levels_of_unit<Levels>(codes.a)),
        b(levels_of_unit<Levels>(codes.b)),
        c(levels_of_unit<Levels>(codes.c)),
        d(levels_of_unit<Levels>(codes.d)) {}
  GGUF_INLINE v128_t unit(int k) const { return k < 2 ? (k == 0 ? a : b) : (k == 2 ? c : d); }
};

template <class Levels>
GGUF_INLINE Values<Levels> values(const Codes<Levels::kBits>& c) {
  return Values<Levels>(c);
}

/** Whether the scale of these levels may take a factor of 2^-24: see `Scaled` in the README. */
template <class Levels>
constexpr bool kMovesFactor = Levels::kLinear && Levels::kBits >= 4 && Levels::value(0) < 0;

template <class Levels>
struct Scaled {
  float d;
  GGUF_INLINE explicit Scaled(float scale) : d(kMovesFactor<Levels> ? scale * 0x1p-24f : scale) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    if constexpr (kMovesFactor<Levels>) return mul(scaled_int8_to_floats(v.unit(unit)), d);
    return mul(int8_to_floats(v.unit(unit)), d);
  }
};

template <class Levels>
struct Affine {
  float d, m;
  GGUF_INLINE Affine(float scale, float offset) : d(scale), m(offset) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return add(mul(int8_to_floats(v.unit(unit)), d), m);
  }
};

// ---- storing ---------------------------------------------------------------------------------------------

/** Four binary16 in the low halves of their lanes: see `float_to_half` in half.h. */
GGUF_INLINE v128_t to_halves(v128_t x) {
  const v128_t magnitude = wasm_v128_and(x, wasm_u32x4_splat(0x7fffffff));
  const v128_t sign = wasm_u32x4_shr(wasm_v128_xor(x, magnitude), 16);
  const v128_t odd = wasm_v128_and(wasm_u32x4_shr(magnitude, 13), wasm_u32x4_splat(1));
  const v128_t rounded = wasm_i32x4_add(wasm_i32x4_add(magnitude, odd),
                                        wasm_u32x4_splat(0xfff - (static_cast<uint32_t>(127 - 15) << 23)));
  const v128_t normal = wasm_u32x4_shr(rounded, 13);
  const v128_t point_five = wasm_f32x4_splat(0.5f);
  const v128_t small = wasm_i32x4_sub(wasm_f32x4_add(magnitude, point_five), point_five);
  const v128_t finite =
      wasm_v128_bitselect(small, normal, wasm_i32x4_lt(magnitude, wasm_u32x4_splat(0x38800000)));
  const v128_t is_nan = wasm_i32x4_gt(magnitude, wasm_u32x4_splat(0x7f800000));
  const v128_t special =
      wasm_v128_or(wasm_u32x4_splat(0x7c00), wasm_v128_and(is_nan, wasm_u32x4_splat(0x200)));
  const v128_t result =
      wasm_v128_bitselect(special, finite, wasm_i32x4_gt(magnitude, wasm_u32x4_splat(0x477fefff)));
  return wasm_v128_or(result, sign);
}

/** Four bfloat16 in the low halves of their lanes: rounded to nearest even, NaNs quiet. */
GGUF_INLINE v128_t to_bfloat16s(v128_t x) {
  const v128_t odd = wasm_v128_and(wasm_u32x4_shr(x, 16), wasm_u32x4_splat(1));
  const v128_t rounded = wasm_i32x4_add(x, wasm_i32x4_add(odd, wasm_u32x4_splat(0x7fff)));
  const v128_t quiet = wasm_v128_or(x, wasm_u32x4_splat(0x400000));
  return wasm_u32x4_shr(wasm_v128_bitselect(rounded, quiet, wasm_f32x4_eq(x, x)), 16);
}

template <Out kOut>
GGUF_INLINE v128_t to_words(v128_t low, v128_t high) {
  if constexpr (kOut == Out::kFloat16) return wasm_u16x8_narrow_i32x4(to_halves(low), to_halves(high));
  return wasm_u16x8_narrow_i32x4(to_bfloat16s(low), to_bfloat16s(high));
}

constexpr int kConverted = 32;

template <Out kOut, Store kStore>
GGUF_INLINE void convert(uint16_t* y, const float* x) {
  for (int i = 0; i < kConverted; i += 8) {
    wasm_v128_store(y + i, to_words<kOut>(wasm_v128_load(x + i), wasm_v128_load(x + i + 4)));
  }
}

}  // namespace simd
}  // namespace
}  // namespace gguf
