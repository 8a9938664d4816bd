// NEON, which every 64-bit ARM processor has.
#pragma once

#include <arm_neon.h>

#include "dequant/simd/common.h"

#define GGUF_SIMD_SET

namespace gguf {
namespace {
namespace simd {

constexpr const char* kName = "neon";
constexpr bool kStreams = false;
constexpr bool kMultipliesInKernels = true;
constexpr int kPairRegisters = 1;

constexpr int kLanes = 4;
constexpr int kTileSums = 24;  // of 32 registers
struct Lanes {
  float32x4_t x;
};

using Register = uint8x16_t;
using IntRegister = int32x4_t;

GGUF_INLINE Register load_16(const uint8_t* p) {
  return vld1q_u8(p);
}

GGUF_INLINE Register select_bits(uint8_t mask, Register a, Register b) {
  return vbslq_u8(vdupq_n_u8(mask), a, b);
}

GGUF_INLINE Register nibble_run(const uint8_t* p) {
  const uint8x8_t bytes = vld1_u8(p);
  return vcombine_u8(bytes, vshr_n_u8(bytes, 4));
}

template <int kUnit>
GGUF_INLINE Register unpack_unit(Register bytes) {
  const uint8x16_t quarter = vcombine_u8(vcreate_u8(0x0101010100000000), vcreate_u8(0x0303030302020202));
  const int8x16_t right = vreinterpretq_s8_u32(vdupq_n_u32(0xfafcfe00));  // 0, -2, -4, -6
  return vshlq_u8(vqtbl1q_u8(bytes, vaddq_u8(quarter, vdupq_n_u8(4 * kUnit))), right);
}

GGUF_INLINE Register spread_source(uint64_t bits) {
  return vcombine_u8(vcreate_u8(bits), vdup_n_u8(0));
}

template <int kUnit>
GGUF_INLINE Register spread_unit(Register source) {
  const uint8x8_t bit = vcreate_u8(0x8040201008040201);
  const uint8x16_t two = vqtbl1q_u8(source, vcombine_u8(vdup_n_u8(2 * kUnit), vdup_n_u8(2 * kUnit + 1)));
  return vtstq_u8(two, vcombine_u8(bit, bit));
}

GGUF_INLINE Register row_pair(const uint64_t* book, const uint16_t* rows) {
  return vreinterpretq_u8_u64(vcombine_u64(vld1_u64(book + rows[0]), vld1_u64(book + rows[1])));
}

GGUF_INLINE Register four_rows(const uint32_t* book, const uint16_t* rows) {
  uint32x4_t x = vdupq_n_u32(0);
  x = vld1q_lane_u32(book + rows[0], x, 0);
  x = vld1q_lane_u32(book + rows[1], x, 1);
  x = vld1q_lane_u32(book + rows[2], x, 2);
  x = vld1q_lane_u32(book + rows[3], x, 3);
  return vreinterpretq_u8_u32(x);
}

template <int N>
GGUF_INLINE Register shift_unit(Register x) {
  if constexpr (N > 0) return vshrq_n_u8(x, N);
  if constexpr (N < 0) return vshlq_n_u8(x, -N);
  return x;
}

/** 3x >> 8 of each byte is the top two bits of (x + x/2) / 2, which is halved before it can overflow. */
GGUF_INLINE Register top_trits_of_unit(Register x) {
  return vshrq_n_u8(vhaddq_u8(x, vshrq_n_u8(x, 1)), 6);
}

GGUF_INLINE Lanes load_lanes(const float* p) {
  return {vld1q_f32(p)};
}

GGUF_INLINE void store_lanes(float* p, const Lanes& a) {
  vst1q_f32(p, a.x);
}

GGUF_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {vfmaq_f32(c.x, a.x, b.x)};
}

GGUF_INLINE Lanes all_lanes(float c) {
  return {vdupq_n_f32(c)};
}

GGUF_INLINE Lanes mul(const Lanes& a, const Lanes& b) {
  return {vmulq_f32(a.x, b.x)};
}

GGUF_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  return {vaddq_f32(a.x, b.x)};
}

GGUF_INLINE float half(const uint8_t* p) {
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(word16(p)))), 0);
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
  uint8x8_t few = vdup_n_u8(0);
  if constexpr (R::kBytes == 8) few = vld1_u8(high);
  if constexpr (R::kBytes == 4) few = vreinterpret_u8_u32(vdup_n_u32(word32(high)));
  if constexpr (R::kBytes == 2) few = vreinterpret_u8_u16(vdup_n_u16(word16(high)));
  const uint8x16_t bytes = vcombine_u8(few, few);
  const uint16x8_t mask = vdupq_n_u16(((1 << Bits) - 1) << 8);
  for (int half = 0; half < 2; ++half) {
    const uint16x8_t words =
        vreinterpretq_u16_u8(vqtbl1q_u8(bytes, vld1q_u8(kRowFields<R>.byte + 16 * half)));
    const uint16x8_t at_top = vmulq_u16(words, vld1q_u16(kRowFields<R>.factor + 8 * half));
    const uint16x8_t fields = vandq_u16(vshrq_n_u16(at_top, 8 - Bits), mask);
    vst1q_u16(rows + 8 * half, vorrq_u16(vmovl_u8(vld1_u8(low + 8 * half)), fields));
  }
}

template <class To = ToNumbers>
GGUF_INLINE Trits load_trits(const uint8_t* p, To = {}) {
  alignas(16) static constexpr uint8_t kFactors[16] = {1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27};
  const uint8x16_t few = vreinterpretq_u8_u32(vdupq_n_u32(word32(p + 48)));
  return {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vmulq_u8(few, vld1q_u8(kFactors))};
}

GGUF_INLINE Trits times3(const Trits& x) {
  const uint8x16_t three = vdupq_n_u8(3);
  return {vmulq_u8(x.a, three), vmulq_u8(x.b, three), vmulq_u8(x.c, three), vmulq_u8(x.d, three)};
}

// ---- floats ----------------------------------------------------------------------------------------------

GGUF_INLINE Floats16 halves_to_floats(uint16x8_t a, uint16x8_t b) {
  const float16x8_t x = vreinterpretq_f16_u16(a), y = vreinterpretq_f16_u16(b);
  return {{vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x), vcvt_f32_f16(vget_low_f16(y)),
           vcvt_high_f32_f16(y)}};
}

GGUF_INLINE uint16x8_t load_u16(const uint8_t* p) {
  return vreinterpretq_u16_u8(vld1q_u8(p));
}

GGUF_INLINE Floats16 load_f16(const uint8_t* p) {
  return halves_to_floats(load_u16(p), load_u16(p + 16));
}

GGUF_INLINE Floats16 load_bf16(const uint8_t* p) {
  const uint16x8_t a = load_u16(p), b = load_u16(p + 16);
  return {{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16)),
           vreinterpretq_f32_u32(vshll_high_n_u16(a, 16)),
           vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16)),
           vreinterpretq_f32_u32(vshll_high_n_u16(b, 16))}};
}

/**
 * Signed bytes to floats: a table look-up puts each byte on top of its own 32-bit lane, and the conversion
 * from fixed point with 24 fraction bits, which is exact here, divides it by 2^24.
 */
GGUF_INLINE Floats16 int8_to_floats(int8x16_t bytes) {
  constexpr uint8_t kNone = 0xff;  // out of range gives zero
  static constexpr uint8_t kTop[4][16] = {
      {kNone, kNone, kNone, 0, kNone, kNone, kNone, 1, kNone, kNone, kNone, 2, kNone, kNone, kNone, 3},
      {kNone, kNone, kNone, 4, kNone, kNone, kNone, 5, kNone, kNone, kNone, 6, kNone, kNone, kNone, 7},
      {kNone, kNone, kNone, 8, kNone, kNone, kNone, 9, kNone, kNone, kNone, 10, kNone, kNone, kNone, 11},
      {kNone, kNone, kNone, 12, kNone, kNone, kNone, 13, kNone, kNone, kNone, 14, kNone, kNone, kNone, 15}};
  Floats16 r;
  for (int i = 0; i < 4; ++i) {
    r.x[i] = vcvtq_n_f32_s32(vreinterpretq_s32_s8(vqtbl1q_s8(bytes, vld1q_u8(kTop[i]))), 24);
  }
  return r;
}

GGUF_INLINE Floats16 load_int8(const void* p) {
  return int8_to_floats(vld1q_s8(static_cast<const int8_t*>(p)));
}

GGUF_INLINE Floats16 load_int16(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  const int16x8_t a = vreinterpretq_s16_u8(vld1q_u8(bytes)), b = vreinterpretq_s16_u8(vld1q_u8(bytes + 16));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(a))), vcvtq_f32_s32(vmovl_high_s16(a)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(b))), vcvtq_f32_s32(vmovl_high_s16(b))}};
}

GGUF_INLINE Floats16 load_int32(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = vcvtq_f32_s32(vreinterpretq_s32_u8(vld1q_u8(bytes + 16 * i)));
  return r;
}

GGUF_INLINE Floats16 load_f64(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) {
    const float64x2_t a = vreinterpretq_f64_u8(vld1q_u8(p + 32 * i)),
                      b = vreinterpretq_f64_u8(vld1q_u8(p + 32 * i + 16));
    r.x[i] = vcvt_high_f32_f64(vcvt_f32_f64(a), b);
  }
  return r;
}

GGUF_INLINE Floats16 int8x16(uint64_t low, uint64_t high) {
  return int8_to_floats(vcombine_s8(vcreate_s8(low), vcreate_s8(high)));
}

GGUF_INLINE Floats16 load_sixes(const uint8_t* p) {
  const Bytes16 bytes = split_sixes(p);
  return int8x16(bytes.low, bytes.high);
}

GGUF_INLINE Floats16 join_sixes(const uint8_t* nibbles, const uint8_t* pairs) {
  return int8x16(joined_sixes(nibbles, pairs), 0);
}

template <int Stride>
GGUF_INLINE uint16x8_t eight_halves(const uint8_t* p) {
  uint16x8_t x = vdupq_n_u16(word16(p));
  x = vsetq_lane_u16(word16(p + Stride), x, 1);
  x = vsetq_lane_u16(word16(p + 2 * Stride), x, 2);
  x = vsetq_lane_u16(word16(p + 3 * Stride), x, 3);
  x = vsetq_lane_u16(word16(p + 4 * Stride), x, 4);
  x = vsetq_lane_u16(word16(p + 5 * Stride), x, 5);
  x = vsetq_lane_u16(word16(p + 6 * Stride), x, 6);
  return vsetq_lane_u16(word16(p + 7 * Stride), x, 7);
}

template <int Stride>
GGUF_INLINE Floats16 halves(const uint8_t* p) {
  return halves_to_floats(eight_halves<Stride>(p), eight_halves<Stride>(p + 8 * Stride));
}

GGUF_INLINE float sum(const Floats16& a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.x[0], a.x[2]), vaddq_f32(a.x[1], a.x[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/** Four sums, of what is left of four rows. */
GGUF_INLINE float32x4_t sums_of_four(const float* p) {
  float32x4_t four[4];
  for (int i = 0; i < 4; ++i, p += 16) {
    four[i] =
        vaddq_f32(vaddq_f32(vld1q_f32(p), vld1q_f32(p + 8)), vaddq_f32(vld1q_f32(p + 4), vld1q_f32(p + 12)));
  }
  float32x4_t two[2];
  for (int i = 0; i < 2; ++i) {
    const float32x4_t a = four[2 * i], b = four[2 * i + 1];
    two[i] = vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                       vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
  }
  return vaddq_f32(vuzp1q_f32(two[0], two[1]), vuzp2q_f32(two[0], two[1]));
}

GGUF_INLINE void sums(const float* p, float* y) {
  for (int i = 0; i < 16; i += 4) vst1q_f32(y + i, sums_of_four(p + 16 * i));
}

// ---- statistics -------------------------------------------------------------------------------------------

struct Doubles {
  float64x2_t low, high;
};

struct Counts {
  uint32x4_t x;
};

GGUF_INLINE Doubles load_doubles(const float* p) {
  const float32x4_t x = vld1q_f32(p);
  return {vcvt_f64_f32(vget_low_f32(x)), vcvt_high_f64_f32(x)};
}

GGUF_INLINE void store_doubles(double* p, const Doubles& a) {
  vst1q_f64(p, a.low);
  vst1q_f64(p + 2, a.high);
}

GGUF_INLINE Doubles add(const Doubles& a, const Doubles& b) {
  return {vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high)};
}

GGUF_INLINE Doubles sub(const Doubles& a, const Doubles& b) {
  return {vsubq_f64(a.low, b.low), vsubq_f64(a.high, b.high)};
}

GGUF_INLINE Doubles add_square(const Doubles& a, const Doubles& c) {
  return {vfmaq_f64(c.low, a.low, a.low), vfmaq_f64(c.high, a.high, a.high)};
}

GGUF_INLINE Doubles add_rounded_square(const Doubles& a, const Doubles& c) {
  return add({vmulq_f64(a.low, a.low), vmulq_f64(a.high, a.high)}, c);
}

GGUF_INLINE Doubles magnitude(const Doubles& a) {
  return {vabsq_f64(a.low), vabsq_f64(a.high)};
}

/** By comparison and selection: the instruction for the larger has another rule for NaNs. */
GGUF_INLINE Doubles max(const Doubles& a, const Doubles& b) {
  return {vbslq_f64(vcgtq_f64(a.low, b.low), a.low, b.low),
          vbslq_f64(vcgtq_f64(a.high, b.high), a.high, b.high)};
}

GGUF_INLINE Lanes max_signed(const Lanes& a, const Lanes& b) {
  return {vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(a.x), vreinterpretq_s32_f32(b.x)))};
}

GGUF_INLINE Lanes max_unsigned(const Lanes& a, const Lanes& b) {
  return {vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(a.x), vreinterpretq_u32_f32(b.x)))};
}

/** What a comparison gives is -1 as an integer. */
GGUF_INLINE Counts count_equal(const Lanes& a, const Lanes& b, const Counts& c) {
  return {vsubq_u32(c.x, vceqq_f32(a.x, b.x))};
}

GGUF_INLINE uint32_t total(const Counts& c) {
  return vaddvq_u32(c.x);
}

/** The bins of two numbers, if these are in the range. */
GGUF_INLINE uint32x2_t bins_in_range(float64x2_t x, const BinRange& range) {
  const float64x2_t zero = vdupq_n_f64(0), last = vdupq_n_f64(range.last);
  float64x2_t part = vmulq_f64(vsubq_f64(x, vdupq_n_f64(range.low)), vdupq_n_f64(range.scale));
  part = vbslq_f64(vcgtq_f64(part, zero), part, zero);
  return vmovn_u64(vcvtq_u64_f64(vminq_f64(part, last)));
}

GGUF_INLINE void store_slots(uint32_t* slots, const float* p, const BinRange& range) {
  const float32x4_t x = vld1q_f32(p);
  const Doubles wide = load_doubles(p);
  const uint32x4_t bin = vcombine_u32(bins_in_range(wide.low, range), bins_in_range(wide.high, range));
  uint32x4_t slot = vaddq_u32(bin, vdupq_n_u32(1));
  slot = vbicq_u32(slot, vcltq_f32(x, vdupq_n_f32(range.smallest)));
  slot = vbslq_u32(vcgtq_f32(x, vdupq_n_f32(range.greatest)), vdupq_n_u32(range.n_slots - 1), slot);
  vst1q_u32(slots, slot);
}

// ---- levels ----------------------------------------------------------------------------------------------

/**
 * Levels of up to four bits are looked up as bfloat16 numbers, their lower and upper bytes, and zipping twice
 * makes binary32 of them. That takes fewer and simpler instructions than putting integers on top of lanes and
 * converting them, which is left to wider levels.
 */
template <class Levels>
GGUF_INLINE Floats16 levels_of_unit(uint8x16_t codes) {
  constexpr int kMask = (1 << Levels::kBits) - 1;
  const uint8x16_t code = vandq_u8(codes, vdupq_n_u8(kMask));
  if constexpr (Levels::kBits > 4) {
    static_assert(Levels::kLinear);
    return int8_to_floats(
        vaddq_s8(vreinterpretq_s8_u8(code), vdupq_n_s8(static_cast<int8_t>(Levels::value(0)))));
  } else {
    const uint8x16_t lower = vqtbl1q_u8(vld1q_u8(kBfloat16Levels<Levels>.lower), code);
    const uint8x16_t upper = vqtbl1q_u8(vld1q_u8(kBfloat16Levels<Levels>.upper), code);
    const uint16x8_t zero = vdupq_n_u16(0), first = vreinterpretq_u16_u8(vzip1q_u8(lower, upper)),
                     second = vreinterpretq_u16_u8(vzip2q_u8(lower, upper));
    return {{vreinterpretq_f32_u16(vzip1q_u16(zero, first)), vreinterpretq_f32_u16(vzip2q_u16(zero, first)),
             vreinterpretq_f32_u16(vzip1q_u16(zero, second)),
             vreinterpretq_f32_u16(vzip2q_u16(zero, second))}};
  }
}

template <class Levels>
struct Values {
  Codes<Levels::kBits> codes;
  GGUF_INLINE explicit Values(const Codes<Levels::kBits>& its_codes) : codes(its_codes) {}
  GGUF_INLINE Floats16 unit(int k) const {
    return levels_of_unit<Levels>(k < 2 ? (k == 0 ? codes.a : codes.b) : (k == 2 ? codes.c : codes.d));
  }
};

template <class Levels>
GGUF_INLINE Values<Levels> values(const Codes<Levels::kBits>& c) {
  return Values<Levels>(c);
}

template <class Levels>
struct Scaled {
  float d;
  GGUF_INLINE explicit Scaled(float scale) : d(scale) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const { return mul(v.unit(unit), d); }
};

// Affine fuses: the product is exact, so one rounding gives the same result as two.
template <class Levels>
struct Affine {
  float d, m;
  GGUF_INLINE Affine(float scale, float offset) : d(scale), m(offset) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    const Floats16 level = v.unit(unit);
    const float32x4_t scale = vdupq_n_f32(d), offset = vdupq_n_f32(m);
    return {{vfmaq_f32(offset, level.x[0], scale), vfmaq_f32(offset, level.x[1], scale),
             vfmaq_f32(offset, level.x[2], scale), vfmaq_f32(offset, level.x[3], scale)}};
  }
};

// ---- storing ---------------------------------------------------------------------------------------------

GGUF_INLINE uint16x8_t to_halves(float32x4_t low, float32x4_t high) {
  return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high));
}

/** Four bfloat16, each in the high half of its lane: rounded to nearest even, NaNs quiet. */
GGUF_INLINE uint32x4_t to_bfloat16(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t is_number = vceqq_f32(x, x);
  return vbslq_u32(is_number, rounded, vorrq_u32(bits, vdupq_n_u32(0x400000)));
}

template <Out kOut>
GGUF_INLINE uint16x8_t to_words(float32x4_t low, float32x4_t high) {
  if constexpr (kOut == Out::kFloat16) return to_halves(low, high);
  return vuzp2q_u16(vreinterpretq_u16_u32(to_bfloat16(low)), vreinterpretq_u16_u32(to_bfloat16(high)));
}

constexpr int kConverted = 32;

// Streaming is left to the hardware: ARM cores detect writes of whole lines and stop allocating them in the
// cache. The only hint, stnp, guarantees nothing more.
template <Out kOut, Store kStore>
GGUF_INLINE void convert(uint16_t* y, const float* x) {
  for (int i = 0; i < kConverted; i += 8) {
    vst1q_u16(y + i, to_words<kOut>(vld1q_f32(x + i), vld1q_f32(x + i + 4)));
  }
}

}  // namespace simd
}  // namespace
}  // namespace gguf
