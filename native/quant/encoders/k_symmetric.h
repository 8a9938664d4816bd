// Q3_K, Q6_K: sub-blocks of 16 numbers with a scale, for codes around 0.
#pragma once

#include "quant/encoders/k_wider.h"

GGUF_SMALLER_BEGIN
namespace gguf {
namespace {
namespace lanes {

/** The scales of a block's sub-blocks, and the codes of the searches, for those whose scale becomes 0. */
struct SymmetricFits {
  static constexpr int kColumns = 16, kSubBlocks = kBlock / kColumns;
  Values<kSubBlocks> scale, inverse, weight;
};

/** The codes of a search whose scale became 0. */
template <int kMost>
GGUF_NOINLINE void codes_of_search(const float* x, float inverse, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    const int32_t code = nearest_int(inverse * x[i]);
    codes[i] = static_cast<uint8_t>((code < -kMost ? -kMost : code < kMost - 1 ? code : kMost - 1) + kMost);
    if (inverse == 0.0f) codes[i] = 0;
  }
}

/** The codes of a block, whose sub-blocks have scales of `unit`. */
template <int kMost, class CodesOfSearch>
GGUF_INLINE void round_block(const float* x, float unit, const int8_t* scale, uint8_t* codes,
                             CodesOfSearch codes_of_search) {
  for (int j = 0; j < 16; ++j, x += 16, codes += 16) {
    const float d = unit * scale[j];
    if (d == 0.0f) {
      codes_of_search(j, x, codes);
    } else {
      round_codes<16, -kMost, kMost - 1>(x, 0.0f, d, codes);
    }
  }
}

GGUF_INLINE void pack_codes(BlockQ6_K* y, const uint8_t* codes) {
  for (int half = 0; half < 2; ++half, codes += 128) {
    uint8_t *low = y->ql + 64 * half, *high = y->qh + 32 * half;
    for (int i = 0; i < 64; ++i) low[i] = static_cast<uint8_t>((codes[i] & 15) | codes[i + 64] << 4);
    for (int i = 0; i < 32; ++i) {
      high[i] = static_cast<uint8_t>(codes[i] >> 4 | codes[i + 32] >> 4 << 2 | codes[i + 64] >> 4 << 4 |
                                     codes[i + 96] >> 4 << 6);
    }
  }
}

GGUF_NOINLINE void search_q6_k(const Group& group, int first, SymmetricFits& fits) {
  Float2 x[16], w[16];
  load_weighted<16>(group, nullptr, first, x, w);
  const auto fit = fit_symmetric<16, 32>(x, w);
  fits.scale.put(first, fit.scale);
  fits.inverse.put(first, fit.inverse);
}

/** Scales in units of which the greatest is -128. */
GGUF_INLINE RoundedScales<16> round_q6_k(const float* scale) {
  RoundedScales<16> rounded;
  rounded.least = -128;
  const float to_codes = -128.0f / greatest_of(scale, 16);
  rounded.unit = float_to_half(1.0f / to_codes);
  for (int j = 0; j < 16; ++j)
    rounded.set(j, static_cast<int8_t>(std::min(127, nearest_int(to_codes * scale[j]))));
  return rounded;
}

GGUF_NOINLINE void finish(const float* x, const RoundedScales<16>& scales, const float* inverse,
                          BlockQ6_K* y) {
  int8_t scale_codes[16];
  for (int j = 0; j < 16; ++j) scale_codes[j] = static_cast<int8_t>(scales.number(j));
  uint8_t codes[kBlock];
  round_block<32>(x, scales.value(), scale_codes, codes,
                  [&](int j, const float* numbers, uint8_t* to)
                      GGUF_INLINE_LAMBDA { codes_of_search<32>(numbers, inverse[j], to); });
  put_half(y->d, scales.unit);
  std::memcpy(y->scales, scale_codes, sizeof scale_codes);
  pack_codes(y, codes);
}

void encode_q6_k(const float* x, const float* importance, uint64_t n_blocks, BlockQ6_K* dst, Search search) {
  for_groups<kLanes>(x, importance, n_blocks, dst, [&](const Group& group, BlockQ6_K* y) {
    SymmetricFits fits;
    RoundedScales<16> scales[kLanes];
    for (int first = 0; first < group.n_blocks * 16; first += 2 * kLanes) search_q6_k(group, first, fits);
    for (int b = 0; b < group.n_blocks; ++b) scales[b] = round_q6_k(fits.scale.block(b));
    if (search == Search::kBest) improve_symmetric<16>(group, nullptr, LinearLevels{-32, 31}, 128, scales);
    for (int b = 0; b < group.n_blocks; ++b) {
      if (std::fabs(greatest_of(fits.scale.block(b), 16)) < kLeastMagnitude) {
        y[b] = BlockQ6_K{};
      } else {
        finish(group.x + b * kBlock, scales[b], fits.inverse.block(b), y + b);
      }
    }
  });
}

/** Scales of six bits: of the first eight in the low half of a byte, of the others in the high one; the upper
 * two bits after them. */
GGUF_INLINE void pack_scales(BlockQ3_K* y, const uint8_t* scale) {
  for (int j = 0; j < 8; ++j) y->scales[j] = static_cast<uint8_t>((scale[j] & 15) | scale[j + 8] << 4);
  for (int j = 0; j < 4; ++j) {
    y->scales[j + 8] = static_cast<uint8_t>(scale[j] >> 4 | scale[j + 4] >> 4 << 2 | scale[j + 8] >> 4 << 4 |
                                            scale[j + 12] >> 4 << 6);
  }
}

GGUF_INLINE void pack_codes(BlockQ3_K* y, uint8_t* codes) {
  pack_bits<2>(y->hmask, codes);
  for (int i = 0; i < kBlock; ++i) codes[i] &= 3;
  pack_crumbs(y->q, codes);
}

/** Rounds and packs a block, whose scales are from -32 to 31 units. */
template <class CodesOfSearch>
GGUF_INLINE void finish(const float* x, const RoundedScales<16>& scales, BlockQ3_K* y,
                        CodesOfSearch codes_of_search) {
  int8_t scale_codes[16];
  for (int j = 0; j < 16; ++j) scale_codes[j] = static_cast<int8_t>(scales.number(j));
  uint8_t codes[kBlock];
  round_block<4>(x, scales.value(), scale_codes, codes, codes_of_search);
  put_half(y->d, scales.unit);
  pack_scales(y, scales.code);
  pack_codes(y, codes);
}

// Without importance.

struct Q3_KFits {
  Values<16> scale;
  int32_t codes[kBlock * kLanes];  // of the searches: of kLanes sub-blocks the first, and so on
};

GGUF_NOINLINE void search_q3_k(const Group& group, int first, Q3_KFits& fits) {
  Float2 columns[16];
  load_columns<16>(group.x + first * 16, columns);
  const auto codes = fit_codes<16, 4>(columns);
  fits.scale.put(first, codes.scale());
  for (int i = 0; i < 16; ++i) {
    store(fits.codes + 16 * first + kLanes * i, codes.code[i].a);
    store(fits.codes + 16 * (first + kLanes) + kLanes * i, codes.code[i].b);
  }
}

/** Scales in units of which the greatest is -32. */
GGUF_INLINE RoundedScales<16> round_q3_k(const float* scale) {
  const float most = greatest_of(scale, 16), to_codes = -32.0f / most;
  RoundedScales<16> rounded = {{}, 0, -32};
  if (most == 0.0f) return rounded;
  for (int j = 0; j < 16; ++j) {
    const auto code = static_cast<int8_t>(nearest_int(to_codes * scale[j]));
    rounded.set(j, code < -32 ? -32 : code < 31 ? code : 31);
  }
  rounded.unit = float_to_half(1.0f / to_codes);
  return rounded;
}

GGUF_NOINLINE void finish(const float* x, const Q3_KFits& fits, const RoundedScales<16>& scales, int b,
                          BlockQ3_K* y) {
  finish(x, scales, y, [&](int j, const float*, uint8_t* to) GGUF_INLINE_LAMBDA {
    const int sub_block = 16 * b + j, lane = sub_block % kLanes;
    const int32_t* codes = fits.codes + 16 * (sub_block - lane) + lane;
    for (int i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>(codes[kLanes * i] + 4);
  });
}

// With importance.

GGUF_NOINLINE void search_q3_k(const Group& group, const float* sigma2, int first, SymmetricFits& fits) {
  Float2 columns[16], w[16];
  load_weighted<16>(group, sigma2, first, columns, w);
  Float2 sum = splat(0.0f);
  for (int i = 0; i < 16; ++i) sum += w[i];
  const auto fit = fit_symmetric<16, 4>(columns, w);
  fits.scale.put(first, fit.scale);
  fits.inverse.put(first, fit.inverse);
  fits.weight.put(first, sum);
}

/** Codes from 0 to 63 for the scales of kLanes blocks. */
GGUF_NOINLINE void round_weighted(const SymmetricFits& fits, RoundedScales<16>* rounded) {
  Float x[16], w[16];
  fits.scale.by_blocks(x);
  fits.weight.by_blocks(w);
  const auto fit = fit_symmetric<16, 32>(x, w);
  const Float unit = with_sign_of_nan(fit.scale);
  const Mask none = are_none(greatest<16>(x));  // inverse is 0 too where a scale is infinite
  for (int j = 0; j < 16; ++j) {
    const Int code = clamp(nearest_int(fit.inverse * x[j]), -32, 31) + splat(32);
    const Int kept = select(none, splat(0), code);
    for (int b = 0; b < kLanes; ++b) rounded[b].code[j] = static_cast<uint8_t>(kept[b]);
  }
  for (int b = 0; b < kLanes; ++b) {
    rounded[b].unit = float_to_half(unit[b]);
    rounded[b].least = -32;
  }
}

void encode_q3_k(const float* x, const float* importance, uint64_t n_blocks, BlockQ3_K* dst, Search search) {
  for_groups<kLanes>(x, importance, n_blocks, dst, [&](const Group& group, BlockQ3_K* y) {
    RoundedScales<16> scales[kLanes];
    float sigma2[kLanes];
    const auto improve = [&]() {
      if (search == Search::kBest) improve_symmetric<16>(group, sigma2, LinearLevels{-4, 3}, 32, scales);
    };
    if (group.importance == nullptr) {
      Q3_KFits fits;
      for (int first = 0; first < group.n_blocks * 16; first += 2 * kLanes) search_q3_k(group, first, fits);
      for (int b = 0; b < group.n_blocks; ++b) scales[b] = round_q3_k(fits.scale.block(b));
      improve();
      for (int b = 0; b < group.n_blocks; ++b) finish(group.x + b * kBlock, fits, scales[b], b, y + b);
      return;
    }
    SymmetricFits fits = {};
    store(sigma2, splat(2.0f) * sums_of_squares(group.x) / splat(256.0f));
    for (int first = 0; first < group.n_blocks * 16; first += 2 * kLanes) {
      search_q3_k(group, sigma2, first, fits);
    }
    round_weighted(fits, scales);
    improve();
    for (int b = 0; b < group.n_blocks; ++b) {
      const float* inverse = fits.inverse.block(b);
      finish(group.x + b * kBlock, scales[b], y + b,
             [&](int j, const float* numbers, uint8_t* to)
                 GGUF_INLINE_LAMBDA { codes_of_search<4>(numbers, inverse[j], to); });
    }
  });
}

}  // namespace lanes

void encode(const float* x, const float* importance, uint64_t n_blocks, BlockQ3_K* y, Search search) {
  lanes::encode_q3_k(x, importance, n_blocks, y, search);
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockQ6_K* y, Search search) {
  lanes::encode_q6_k(x, importance, n_blocks, y, search);
}

}  // namespace
}  // namespace gguf
GGUF_SMALLER_END
