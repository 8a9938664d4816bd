// Levels as bytes, and exact sums of their products with int8, in NEON. The instruction that adds four
// products is not part of every processor. With GGUF_NEON_DOTPROD, and inside its target region, it is used.
// Without, two products are added in 16 bits, where they fit, and then in 32. With GGUF_NEON_I8MM, tiles are
// multiplied by an instruction that adds eight products of each of two rows and two vectors.
#pragma once

#include "dequant/simd/neon.h"

namespace gguf {
namespace {
namespace simd {

constexpr int kByteKinds = 1;
constexpr bool kMultipliesCodesInKernels = true;
using CodeTransposer = void;
template <class Levels>
constexpr int kByteKind = 0;
/** Linear levels of few bits need not be subtracted from. */
template <class Levels>
constexpr int kByteBias = Levels::kLinear ? -Levels::value(0) : 0;
constexpr bool kSignedTiles = true;
template <int kKind>
constexpr int kLevelBytes = 1;
constexpr int kRowRegisters = 1;

// ---- bytes -----------------------------------------------------------------------------------------------

struct Bytes32 {
  int8x16_t a, b;
};

/** The levels of 16 codes, with kByteBias added. */
template <class Levels>
GGUF_INLINE int8x16_t levels_of_codes(uint8x16_t codes) {
  const uint8x16_t code = vandq_u8(codes, vdupq_n_u8((1 << Levels::kBits) - 1));
  if constexpr (Levels::kLinear) {
    return vreinterpretq_s8_u8(code);
  } else {
    static_assert(Levels::kBits <= 4, "tbl looks up four bits");
    return vqtbl1q_s8(vld1q_s8(kLevelTable<Levels>.level), code);
  }
}

template <class Levels>
GGUF_INLINE int8x16_t levels_of_unit(const Values<Levels>& v, int unit) {
  const auto& c = v.codes;
  return levels_of_codes<Levels>(unit < 2 ? (unit == 0 ? c.a : c.b) : (unit == 2 ? c.c : c.d));
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const Values<Levels>& a, int i, const Values<Levels>& b, int k) {
  return {levels_of_unit(a, i), levels_of_unit(b, k)};
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const SignedBytes& v, int unit) {
  const auto* const p = reinterpret_cast<const int8_t*>(v.p) + 16 * unit;
  return {vld1q_s8(p), vld1q_s8(p + 16)};
}

template <class Levels>
GGUF_INLINE void store_bytes(uint8_t* to, const Bytes32& v) {
  const int8x16_t bias = vdupq_n_s8(kByteBias<Levels>);
  vst1q_s8(reinterpret_cast<int8_t*>(to), vsubq_s8(v.a, bias));
  vst1q_s8(reinterpret_cast<int8_t*>(to) + 16, vsubq_s8(v.b, bias));
}

// ---- one row and one vector ------------------------------------------------------------------------------

/** sum += the products of 16 bytes, four of them in each lane. */
GGUF_INLINE int32x4_t add_dot(int32x4_t sum, int8x16_t w, int8x16_t x) {
#if defined(GGUF_NEON_DOTPROD)
  return vdotq_s32(sum, w, x);
#else
  sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(w), vget_low_s8(x)));
  return vpadalq_s16(sum, vmull_high_s8(w, x));
#endif
}

GGUF_INLINE int32x4_t add_fours(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
  return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const Bytes32& c, const Bytes32& d,
                              const DotColumns<kRun>& x) {
  const int32x4_t zero = vdupq_n_s32(0);
  const auto first = [&](const Bytes32& w, int k) { return add_dot(zero, w.a, vld1q_s8(x.first_half(k))); };
  const auto last = [&](int32x4_t sum, const Bytes32& w, int k) {
    return add_dot(sum, w.b, vld1q_s8(x.last_half(k)));
  };
  if constexpr (kRun == 32) {
    return {add_fours(last(first(a, 0), a, 0), last(first(b, 1), b, 1), last(first(c, 2), c, 2),
                      last(first(d, 3), d, 3))};
  } else {
    return {add_fours(first(a, 0), first(b, 1), first(c, 2), first(d, 3)),
            add_fours(last(zero, a, 0), last(zero, b, 1), last(zero, c, 2), last(zero, d, 3))};
  }
}

GGUF_INLINE void sixteen_sums(const DotSums<16>& a, const DotSums<16>& b, Ints8 (&sums)[2]) {
  sums[0] = {vzip1q_s32(a.lower, a.upper), vzip2q_s32(a.lower, a.upper)};
  sums[1] = {vzip1q_s32(b.lower, b.upper), vzip2q_s32(b.lower, b.upper)};
}

GGUF_INLINE Ints8 add(const Ints8& v, const int32_t* p) {
  return {vaddq_s32(v.a, vld1q_s32(p)), vaddq_s32(v.b, vld1q_s32(p + 4))};
}

GGUF_INLINE Floats8 floats_8(float a, float b, float c, float d, float e, float f, float g, float h) {
  const float x[8] = {a, b, c, d, e, f, g, h};
  return load_8(x);
}

GGUF_INLINE Floats8 to_floats(const Ints8& v) {
  return {vcvtq_f32_s32(v.a), vcvtq_f32_s32(v.b)};
}

GGUF_INLINE float sum(const Floats8& v) {
  const float32x4_t four = vaddq_f32(v.a, v.b);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

GGUF_INLINE float32x4_t keep_lanes(float32x4_t a, int32x4_t lane, int first, int end) {
  const uint32x4_t kept = vandq_u32(vcgeq_s32(lane, vdupq_n_s32(first)), vcltq_s32(lane, vdupq_n_s32(end)));
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), kept));
}

GGUF_INLINE Floats8 keep(const Floats8& v, int first, int end) {
  static constexpr int32_t kLane[4] = {0, 1, 2, 3};
  const int32x4_t lane = vld1q_s32(kLane);
  return {keep_lanes(v.a, lane, first, end), keep_lanes(v.b, lane, first - 4, end - 4)};
}

// ---- rows and vectors ------------------------------------------------------------------------------------

struct IntLanes {
  int32x4_t x;
};

GGUF_INLINE IntLanes broadcast_int(const void* p) {
  return {vreinterpretq_s32_u32(vdupq_n_u32(word32(static_cast<const uint8_t*>(p))))};
}

#if defined(GGUF_NEON_I8MM)
constexpr int kByteVectors = 8;

GGUF_INLINE int32x4_t low_halves(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
GGUF_INLINE int32x4_t high_halves(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

/** Words are of eight columns. */
template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  constexpr int kPairs = (kVectors + 1) / 2;
  // Sums of two vectors: of the first with rows 0 and 1, of the second with these; the same with rows 2
  // and 3.
  int32x4_t first_rows[kPairs] = {}, last_rows[kPairs] = {};
  GGUF_UNROLL
  for (int i = 0; i < kRun / 8; ++i, w += 32, x += 8 * kVectors) {
    const int8x16_t first = vreinterpretq_s8_u8(vld1q_u8(w)), last = vreinterpretq_s8_u8(vld1q_u8(w + 16));
    GGUF_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const uint8_t* const at = x + 16 * p;
      const int8x16_t two =
          vreinterpretq_s8_u8(2 * p + 1 < kVectors ? vld1q_u8(at) : vcombine_u8(vld1_u8(at), vdup_n_u8(0)));
      first_rows[p] = vmmlaq_s32(first_rows[p], two, first);
      last_rows[p] = vmmlaq_s32(last_rows[p], two, last);
    }
  }
  GGUF_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int32x4_t a = first_rows[v / 2], b = last_rows[v / 2];
    sums[v][0].x = vaddq_s32(sums[v][0].x, v % 2 == 0 ? low_halves(a, b) : high_halves(a, b));
  }
}

/** With words of eight columns: kWords is a number of halves. */
template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += 4, rows += 16, to += 64) {
    const auto row = [&](uint64_t k) { return vreinterpretq_s32_u8(vld1q_u8(rows + k * stride)); };
    const auto store = [&](int place, int32x4_t two) {
      vst1q_u8(to + 16 * place, vreinterpretq_u8_s32(two));
    };
    store(0, low_halves(row(0), row(1)));
    store(1, low_halves(row(2), row(3)));
    store(2, high_halves(row(0), row(1)));
    store(3, high_halves(row(2), row(3)));
  }
}
#else
#if defined(GGUF_NEON_DOTPROD)
constexpr int kByteVectors = 8;

/** sum += the products of the rows' bytes with word `word` of `words`. */
GGUF_INLINE int32x4_t add_word(int32x4_t sum, int8x16_t rows, int8x16_t words, int word) {
  switch (word) {
    case 0:
      return vdotq_laneq_s32(sum, rows, words, 0);
    case 1:
      return vdotq_laneq_s32(sum, rows, words, 1);
    case 2:
      return vdotq_laneq_s32(sum, rows, words, 2);
    default:
      return vdotq_laneq_s32(sum, rows, words, 3);
  }
}

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  GGUF_UNROLL
  for (int i = 0; i < kRun / 4; ++i, w += 16, x += 4 * kVectors) {
    const int8x16_t rows = vreinterpretq_s8_u8(vld1q_u8(w));
    GGUF_UNROLL
    for (int v = 0; v + 4 <= kVectors; v += 4) {
      const int8x16_t four = vreinterpretq_s8_u8(vld1q_u8(x + 4 * v));
      GGUF_UNROLL
      for (int k = 0; k < 4; ++k) sums[v + k][0].x = add_word(sums[v + k][0].x, rows, four, k);
    }
    GGUF_UNROLL
    for (int v = kVectors / 4 * 4; v < kVectors; ++v) {
      sums[v][0].x = vdotq_s32(sums[v][0].x, rows, vreinterpretq_s8_s32(broadcast_int(x + 4 * v).x));
    }
  }
}
#else
constexpr int kByteVectors = 6;

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  GGUF_UNROLL
  for (int i = 0; i < kRun / 4; ++i) {
    const int8x16_t rows = vreinterpretq_s8_u8(vld1q_u8(w + 16 * i));
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const int8x16_t four = vreinterpretq_s8_s32(broadcast_int(x + 4 * (i * kVectors + v)).x);
      // Two sums of a row are next to each other.
      sums[v][0].x =
          vaddq_s32(sums[v][0].x, vpaddq_s32(vpaddlq_s16(vmull_s8(vget_low_s8(rows), vget_low_s8(four))),
                                             vpaddlq_s16(vmull_high_s8(rows, four))));
    }
  }
}
#endif

template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += 4, rows += 16, to += 64) {
    const uint32x4x2_t even =
        vzipq_u32(vreinterpretq_u32_u8(vld1q_u8(rows)), vreinterpretq_u32_u8(vld1q_u8(rows + 2 * stride)));
    const uint32x4x2_t odd = vzipq_u32(vreinterpretq_u32_u8(vld1q_u8(rows + stride)),
                                       vreinterpretq_u32_u8(vld1q_u8(rows + 3 * stride)));
    vst1q_u8(to, vreinterpretq_u8_u32(vzip1q_u32(even.val[0], odd.val[0])));
    vst1q_u8(to + 16, vreinterpretq_u8_u32(vzip2q_u32(even.val[0], odd.val[0])));
    vst1q_u8(to + 32, vreinterpretq_u8_u32(vzip1q_u32(even.val[1], odd.val[1])));
    vst1q_u8(to + 48, vreinterpretq_u8_u32(vzip2q_u32(even.val[1], odd.val[1])));
  }
}
#endif

GGUF_INLINE Lanes to_lanes(const IntLanes& a) {
  return {vcvtq_f32_s32(a.x)};
}

/** As a number: compilers then multiply by an element of a register rather than broadcast. */
GGUF_INLINE Lanes broadcast(const void* p) {
  float x;
  std::memcpy(&x, p, sizeof x);
  return {vdupq_n_f32(x)};
}

}  // namespace simd
}  // namespace
}  // namespace gguf

#include "dequant/simd/dots_of_units.h"
#include "dequant/simd/rounding.h"
