// Formats whose codes stand for sixteen levels that are not evenly spaced: IQ4_NL, IQ4_XS, MXFP4 and NVFP4. A
// number gets the code of the nearest level. Pictures of the blocks are above the kernels that dequantize
// them (dequant/kernels/simple.h, k_quants.h).
#pragma once

#include "dequant/levels.h"
#include "quant/encoders/groups.h"
#include "quant/encoders/k_wider.h"
#include "quant/encoders/levels_wider.h"
#include "quant/encoders/searches.h"

namespace gguf {
namespace {
namespace lanes {

// ---- four-bit floats: MXFP4, NVFP4

/** The multiples of a scale that codes stand for. */
struct Fp4Levels {
  Float magnitude[8];

  GGUF_INLINE explicit Fp4Levels(Float scale) {
    for (int k = 0; k < 8; ++k) magnitude[k] = scale * splat(1.0f * Fp4::value(k));
  }

  /** Of several levels that are equally near as rounded, the one nearest to 0. */
  GGUF_INLINE Int nearest(Float x) const {
    const Float of_x = abs(x);
    Float error = of_x;
    Int code = splat(0);
    GGUF_UNROLL
    for (int k = 1; k < 8; ++k) {
      const Float other = abs(magnitude[k] - of_x);
      const Mask is_nearer = other < error;
      error = select(is_nearer, other, error);
      code = select(is_nearer, splat(k), code);
    }
    return code | ((x < splat(0.0f)) & (code != splat(0)) & splat(8));
  }
};

/** floor(log2f(x)): log2f rounds the logarithms of numbers just below a power of two to that of the power. */
GGUF_INLINE Int floor_of_log2(Float x) {
  constexpr float kLog2OfE = 0x1.715476p0f;
  const Mask is_subnormal = x < splat(0x1p-126f);
  const Int bits = bits_of(select(is_subnormal, x * splat(0x1p24f), x));
  // x is this power of two times 1 - units / 2^24.
  const Int power = (bits >> 23) - select(is_subnormal, splat(126 + 24), splat(126));
  const Float units = to_float(splat(0x800000) - (bits & splat(0x7fffff)));
  const Float log2 = to_float(power) - units * splat(kLog2OfE * 0x1p-24f);
  return select(log2 == to_float(power), power, power - splat(1));
}

/** The scale is a power of two. The exponents of subnormal numbers wrap around, as on x86. */
GGUF_INLINE void encode_columns(const Columns<BlockMXFP4>& x, BlockMXFP4* y) {
  const Float most = greatest_magnitude<32>(x.column);
  const Int e = (floor_of_log2(most) + splat(125)) & splat(255) & (most > splat(0.0f));
  // 2^(e - 128)
  const Int bits = select(e < splat(2), (e + splat(1)) << 21, (e - splat(1)) << 23);
  const Fp4Levels levels(float_of(bits));
  Int words[4];
  pack_nibbles(words, [&](int j) GGUF_INLINE_LAMBDA { return levels.nearest(x[j]); });
  int32_t exponents[kLanes];
  store(exponents, e);
  for (int lane = 0; lane < kLanes; ++lane) y[lane].e = static_cast<uint8_t>(exponents[lane]);
  put_words<4>(words, y->q, sizeof *y);
}

/**
 * A number that is not negative as an unsigned float of four exponent bits (bias 7) and three fraction bits:
 * rounded by the first bit that is cut off, to the greatest, 448, from 256 on.
 */
GGUF_INLINE Int to_ue4m3(Float x) {
  constexpr float kLeastNormal = 0x1p-6f;
  constexpr int kBias = (127 - 7) << 3, k256 = 15 << 3, k448 = 0x7e;
  const Mask is_subnormal = x < splat(kLeastNormal);
  const Int subnormal =
      min(to_int(select(is_subnormal, x, splat(0.0f)) * splat(512.0f) + splat(0.5f)), splat(7));
  const Int bits = bits_of(x), normal = (bits >> 20) + (bits >> 19 & splat(1)) - splat(kBias);
  return select(is_subnormal, subnormal, select(normal < splat(k256), normal, splat(k448)));
}

/** Half of what such a float stands for. */
GGUF_INLINE Float half_of_ue4m3(Int e) {
  const Int normal = (e << 20) + splat((127 - 7 - 1) << 23);
  return select(e < splat(8), to_float(e) * splat(0x1p-10f), float_of(normal));
}

GGUF_INLINE void encode_columns(const Columns<BlockNVFP4>& x, BlockNVFP4* y) {
  Int scales[4], words[8];
  for (int run = 0; run < 4; ++run) {
    const Float* const of_run = x.column + 16 * run;
    scales[run] = to_ue4m3(greatest_magnitude<16>(of_run) / splat(6.0f));
    const Fp4Levels levels(half_of_ue4m3(scales[run]));
    for (int w = 0; w < 2; ++w) {
      words[2 * run + w] = word_of([&](int i) GGUF_INLINE_LAMBDA {
        return levels.nearest(of_run[4 * w + i]) | levels.nearest(of_run[4 * w + i + 8]) << 4;
      });
    }
  }
  const Int scale_word = word_of([&](int i) GGUF_INLINE_LAMBDA { return scales[i]; });
  put_words<1>(&scale_word, y->scales, sizeof *y);
  put_words<8>(words, y->q, sizeof *y);
}

// ---- levels that are denser around zero: IQ4_NL, IQ4_XS

/** Between level k and the next one. What is equally near to both gets the next one. */
template <int k>
constexpr float kMiddle = (Nonlinear4::value(k) + Nonlinear4::value(k + 1)) * 0.5f;
template <int k>
constexpr int kGap = Nonlinear4::value(k + 1) - Nonlinear4::value(k);
constexpr std::make_integer_sequence<int, 15> kGaps;

/** The nearest level of numbers of at most 134, from the number of middles below. */
template <int... k>
GGUF_INLINE Float count_level(Float x, std::integer_sequence<int, k...>) {
  return to_float((splat(Nonlinear4::value(0)) + ... + ((x >= splat(kMiddle<k>)) & splat(kGap<k>))));
}

#if defined(__x86_64__) && defined(__GNUC__)
/**
 * The numbers from -152 to 152 in cells of 9.5, of which none has more than one middle; and what levels are
 * nearest to numbers below and above that.
 */
struct LevelCells {
  static constexpr float kWidth = 9.5f;
  alignas(64) float middle[32] = {}, below[32] = {}, above[32] = {};

  constexpr LevelCells() {
    for (int i = 0; i < 32; ++i) {
      const float start = (static_cast<float>(i < 16 ? i : i - 32) - 0.5f) * kWidth;
      int k = 0;
      while (k < 15 && middle_above(k) < start) ++k;
      const bool has_middle = k < 15 && middle_above(k) < start + kWidth;
      middle[i] = has_middle ? middle_above(k) : FLT_MAX;
      below[i] = static_cast<float>(Nonlinear4::value(k));
      above[i] = static_cast<float>(Nonlinear4::value(has_middle ? k + 1 : k));
    }
  }
  static constexpr float middle_above(int k) {
    return static_cast<float>(Nonlinear4::value(k) + Nonlinear4::value(k + 1)) * 0.5f;
  }
};
constexpr LevelCells kLevelCells;

/** Middles as a tree: those that are compared second, third and fourth, by the results before; and levels by
 * the first three. */
struct LevelTree {
  alignas(32) float second[8] = {}, third[8] = {}, fourth[8] = {}, below[8] = {}, above[8] = {};

  constexpr LevelTree() {
    for (int i = 0; i < 8; ++i) {
      second[i] = LevelCells::middle_above(3 + 8 * (i % 2));
      third[i] = LevelCells::middle_above(1 + 4 * (i % 4));
      fourth[i] = LevelCells::middle_above(2 * i);
      below[i] = static_cast<float>(Nonlinear4::value(2 * i));
      above[i] = static_cast<float>(Nonlinear4::value(2 * i + 1));
    }
  }
};
constexpr LevelTree kLevelTree;
#endif

template <class Float>
GGUF_INLINE Float nearest_level(Float x) {
#if defined(__x86_64__) && defined(__GNUC__)
  if constexpr (kLanes == 16) {
    // In a number near 1.5 * 2^23, the last bits are an integer. Cells need not be exact, so this may be
    // fused.
    const __m512i cell = _mm512_castps_si512(
        _mm512_fmadd_ps(x, _mm512_set1_ps(1 / LevelCells::kWidth), _mm512_set1_ps(0x1.8p23f)));
    const auto find = [&](const float* table) GGUF_INLINE_LAMBDA {
      return _mm512_permutex2var_ps(_mm512_load_ps(table), cell, _mm512_load_ps(table + 16));
    };
    const __mmask16 is_above = _mm512_cmp_ps_mask(x, find(kLevelCells.middle), _CMP_GE_OQ);
    return _mm512_mask_mov_ps(find(kLevelCells.below), is_above, find(kLevelCells.above));
  } else if constexpr (kLanes == 8) {
    const auto find = [](const float* table, auto at) GGUF_INLINE_LAMBDA {
      return _mm256_permutevar8x32_ps(_mm256_load_ps(table), reinterpret_cast<__m256i>(at));
    };
    Int at = splat(0) - (x >= splat(kMiddle<7>));
    at = at + at - (x >= find(kLevelTree.second, at));
    at = at + at - (x >= find(kLevelTree.third, at));
    const Int is_above = x >= find(kLevelTree.fourth, at);
    return select(is_above, find(kLevelTree.above, at), find(kLevelTree.below, at));
  } else {
    return count_level(x, kGaps);
  }
#else
  return count_level(x, kGaps);
#endif
}

/** The code of the nearest level; of a NaN, the last one. */
template <int... k>
GGUF_INLINE Int nearest_code(Float x, std::integer_sequence<int, k...>) {
  return (splat(15) + ... + (x < splat(kMiddle<k>)));
}

/** For the wider search. */
struct NonlinearLevels {
  static constexpr float least() { return static_cast<float>(Nonlinear4::value(0)); }
  static GGUF_INLINE Float nearest(Float x) {
    return nearest_level(max(min(x, splat(134.0f)), splat(-134.0f)));
  }
  static GGUF_INLINE Float2 nearest(const Float2& x) { return {nearest(x.a), nearest(x.b)}; }
  static GGUF_INLINE Int code(Float x) { return nearest_code(x, kGaps); }
  static constexpr int level(int code) { return Nonlinear4::value(code); }
};

/**
 * The scale with the least weighted error, of 16: those that map the number of greatest magnitude to -120 to
 * -134, and first the one that maps it to 127. A scale that fits the codes with an inverse best is sum(w q x)
 * / sum(w q q), and its error is least where sum(w q x)^2 / sum(w q q) is greatest.
 */
GGUF_INLINE Float fit_nonlinear(const Float* x, const Float* w) {
  const Float zero = splat(0.0f), most = greatest<32>(x);
  Float scale = zero, best = zero;
  for (int step = -8; step <= 7; ++step) {
    const bool is_first = step == -8;
    const Float inverse = is_first ? splat(1.0f) / (most / splat(127.0f)) : splat(step - 127.0f) / most;
    Float sum_qx = zero, sum_q2 = zero;
    for (int j = 0; j < 32; ++j) {
      const Float q = nearest_level(inverse * x[j]), wq = w[j] * q;
      sum_qx += wq * x[j];
      sum_q2 += wq * q;
    }
    Mask is_better = sum_q2 > zero;
    if (!is_first) is_better = is_better & (sum_qx * sum_qx > best * sum_q2);
    const Float fit = sum_qx / sum_q2;
    scale = select(is_better, fit, scale);
    best = select(is_better, fit * sum_qx, is_first ? zero * sum_qx : best);
  }
  return select(abs(most) < splat(kLeastMagnitude), zero, scale);
}

/** How much errors count: the squares of numbers. With importance more, the greater the number and sigma2,
 * twice the mean square of its block. */
GGUF_INLINE void weights_of(const Float* x, Float* w) {
  for (int j = 0; j < 32; ++j) w[j] = x[j] * x[j];
}
GGUF_INLINE void weights_of(const Float* x, Float sigma2, const float* importance, Float* w) {
  load_columns<32>(importance, w);
  scale_weights<32>(x, sigma2, w);
}

GGUF_INLINE void encode_lanes(const float* numbers, const float* importance, BlockIQ4_NL* y, Search search) {
  const Columns<BlockIQ4_NL> x(numbers);
  Float w[32];
  weights_of(x.column, w);
  if (importance != nullptr) {
    Float sum = splat(0.0f);
    for (int j = 0; j < 32; ++j) sum += w[j];
    weights_of(x.column, sum * splat(2.0f / 32), importance, w);
  }
  const Float d = fit_nonlinear(x.column, w);
  const Float inverse = select(d != splat(0.0f), splat(1.0f) / d, splat(0.0f));
  Int words[4];
  pack_nibbles(words, [&](int j) GGUF_INLINE_LAMBDA { return nearest_code(inverse * x[j], kGaps); });
  put_halves(with_sign_of_nan(d), y->d, sizeof *y);
  put_words<4>(words, y->q, sizeof *y);
  if (search == Search::kBest) improve_levels(NonlinearLevels(), x.column, w, y);
}

inline void put_scales(const RoundedScales<8>& scales, BlockIQ4_XS* y) {
  uint32_t low = 0, high = 0;
  for (int i = 0; i < 8; ++i) {
    low |= (scales.code[i] & 15u) << 4 * i;
    high |= static_cast<uint32_t>(scales.code[i] >> 4) << 2 * i;
  }
  const auto high_bits = static_cast<uint16_t>(high);
  put_half(y->d, scales.unit);
  std::memcpy(y->scales_high, &high_bits, sizeof high_bits);
  std::memcpy(y->scales_low, &low, sizeof low);
}

inline RoundedScales<8> scales_of(const BlockIQ4_XS& y) {
  RoundedScales<8> scales;
  scales.least = -32;
  uint32_t low;
  uint16_t high;
  std::memcpy(&scales.unit, y.d, sizeof scales.unit);
  std::memcpy(&high, y.scales_high, sizeof high);
  std::memcpy(&low, y.scales_low, sizeof low);
  for (int i = 0; i < 8; ++i) {
    scales.code[i] = static_cast<uint8_t>((low >> 4 * i & 15) | (high >> 2 * i & 3) << 4);
  }
  return scales;
}

/** Codes of six bits for the scales of eight sub-blocks, the one of greatest magnitude as -32. Puts the
 * inverses of what they stand for. */
inline void encode_scales(const float* scales, float* inverses, BlockIQ4_XS* y) {
  const float d = -greatest_of(scales, 8) / 32, inverse = d != 0.0f ? 1 / d : 0.0f;
  RoundedScales<8> rounded;
  rounded.least = -32;
  rounded.unit = float_to_half(d);
  for (int i = 0; i < 8; ++i) {
    const int32_t code = std::clamp(nearest_int(inverse * scales[i]), -32, 31);
    const float scale = d * static_cast<float>(code);
    inverses[i] = scale != 0.0f ? 1 / scale : 0.0f;
    rounded.set(i, code);
  }
  put_scales(rounded, y);
}

/** Blocks whose sub-blocks, eight of each, fill whole registers. */
constexpr int kBlocksIQ4_XS = kLanes > 8 ? kLanes / 8 : 1;

GGUF_INLINE void encode_lanes(const float* x, const float* importance, BlockIQ4_XS* y) {
  constexpr int kSubBlocks = 8 * kBlocksIQ4_XS, kRegisters = kSubBlocks / kLanes, kNumbers = 32 * kLanes;
  Float columns[kRegisters][32];
  float sigma2[kSubBlocks], scales[kSubBlocks], inverses[kSubBlocks];
  for (int s = 0; s < kSubBlocks && importance != nullptr; ++s) {
    sigma2[s] = s % 8 == 0 ? sum_of_squares(x + 32 * s, 256) * (2.0f / 256) : sigma2[s - 1];
  }
  for (int r = 0; r < kRegisters; ++r) {
    Float w[32];
    load_columns<32>(x + r * kNumbers, columns[r]);
    if (importance == nullptr) {
      weights_of(columns[r], w);
    } else {
      weights_of(columns[r], load(sigma2 + r * kLanes), importance + r * kNumbers, w);
    }
    store(scales + r * kLanes, fit_nonlinear(columns[r], w));
  }
  for (int b = 0; b < kBlocksIQ4_XS; ++b) encode_scales(scales + 8 * b, inverses + 8 * b, y + b);
  for (int r = 0; r < kRegisters; ++r) {
    const Float inverse = load(inverses + r * kLanes);
    Int words[4];
    pack_nibbles(words,
                 [&](int j) GGUF_INLINE_LAMBDA { return nearest_code(inverse * columns[r][j], kGaps); });
    uint8_t codes[kLanes * 16];
    put_words<4>(words, codes, 16);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int s = r * kLanes + lane;
      std::memcpy(y[s / 8].q + s % 8 * 16, codes + lane * 16, 16);
    }
  }
}

/** The block with these scales. */
GGUF_NOINLINE void put_block(const float* x, const RoundedScales<8>& scales, BlockIQ4_XS* y) {
  put_scales(scales, y);
  for (int j = 0; j < 8; ++j, x += 32) {
    const float scale = scales.value() * static_cast<float>(scales.number(j));
    const Float inverse = splat(scale != 0.0f ? 1 / scale : 0.0f);
    uint8_t codes[32];
    for (int i = 0; i < 32; i += kLanes)
      store(codes + i, to_bytes(nearest_code(inverse * load(x + i), kGaps)));
    for (int i = 0; i < 16; ++i) y->q[16 * j + i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
  }
}

GGUF_INLINE void improve(const Group& group, BlockIQ4_XS* y) {
  RoundedScales<8> scales[kLanes];
  for (int b = 0; b < group.n_blocks; ++b) scales[b] = scales_of(y[b]);
  float sigma2[kLanes];
  store(sigma2, splat(2.0f / 256) * sums_of_squares(group.x));
  improve_symmetric<32>(group, sigma2, NonlinearLevels(), 32, scales);
  for (int b = 0; b < group.n_blocks; ++b) {
    if (scales[b] != scales_of(y[b])) put_block(group.x + b * kBlock, scales[b], y + b);
  }
}

}  // namespace lanes

void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ4_NL* y, Search search) {
  lanes::for_whole_groups<lanes::kLanes>(x, importance, n_blocks, y, [=](auto... group) GGUF_INLINE_LAMBDA {
    lanes::encode_lanes(group..., search);
  });
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ4_XS* y, Search search) {
  lanes::for_whole_groups<lanes::kBlocksIQ4_XS>(
      x, importance, n_blocks, y, [](auto... group) GGUF_INLINE_LAMBDA { lanes::encode_lanes(group...); });
  if (search == Search::kBest) {
    lanes::for_groups<lanes::kLanes>(
        x, importance, n_blocks, y,
        [](const lanes::Group& group, BlockIQ4_XS* blocks) { lanes::improve(group, blocks); });
  }
}

}  // namespace
}  // namespace gguf
