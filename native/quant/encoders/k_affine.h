// Q2_K, Q4_K, Q5_K: sub-blocks with a scale and a minimum.
#pragma once

#include "quant/encoders/k_wider.h"

GGUF_SMALLER_BEGIN
namespace gguf {
namespace {
namespace lanes {

template <class Block>
struct AffineFormat;

template <>
struct AffineFormat<BlockQ2_K> {
  static constexpr int kColumns = 16, kMost = 3, kMostScale = 15;
  static constexpr Steps kSteps = {kMost, -0.5f, 0.1f, 15};
  static constexpr Error kError = Error::kMagnitudes;
  static constexpr float kSigmaFactor = 1.0f;
};
template <>
struct AffineFormat<BlockQ4_K> {
  static constexpr int kColumns = 32, kMost = 15, kMostScale = 63;
  static constexpr Steps kSteps = {kMost, -1.0f, 0.1f, 20};
  static constexpr Error kError = Error::kSquares;
  static constexpr float kSigmaFactor = 2.0f;
};
template <>
struct AffineFormat<BlockQ5_K> : AffineFormat<BlockQ4_K> {
  static constexpr int kMost = 31;
  static constexpr Steps kSteps = {kMost, -0.5f, 0.1f, 15};
};

/** The searches of all sub-blocks of a group. */
template <int kSubBlocks>
struct AffineFits {
  Values<kSubBlocks> scale, minimum, inverse, least, weight;

  GGUF_INLINE void put(int first, const Affine<Float2>& fit) {
    scale.put(first, fit.scale);
    minimum.put(first, fit.minimum);
    inverse.put(first, fit.inverse);
    least.put(first, fit.least);
    weight.put(first, fit.sum_w);
  }
};

template <int kColumns, Error kError>
GGUF_NOINLINE void search_affine(const Group& group, const float* sigma2, const Steps& steps,
                                 AffineFits<kBlock / kColumns>& fits) {
  for (int first = 0; first < group.n_blocks * (kBlock / kColumns); first += 2 * kLanes) {
    Float2 x[kColumns], w[kColumns];
    load_for_affine<kColumns>(group, sigma2, first, x, w);
    fits.put(first, fit_affine<kColumns, kError>(x, w, steps));
  }
}

/** Scales or minima in units of the greatest of them. */
template <int kMost, int kSubBlocks>
GGUF_INLINE RoundedScales<kSubBlocks> round_to_greatest(const float* scale) {
  RoundedScales<kSubBlocks> rounded;
  float most = 0.0f;
  for (int j = 0; j < kSubBlocks; ++j) most = scale[j] > most ? scale[j] : most;
  const float inverse = most > 0.0f ? static_cast<float>(kMost) / most : 0.0f;
  for (int j = 0; j < kSubBlocks; ++j) {
    const auto code = static_cast<uint8_t>(nearest_int(inverse * scale[j]));
    rounded.code[j] = kMost == 63 && code > 63 ? 63 : code;
  }
  rounded.unit = float_to_half(most / static_cast<float>(kMost));
  return rounded;
}

/** Scales or minima of kLanes blocks, with the least weighted error. */
template <int kMost, bool kLimits, int kSubBlocks>
GGUF_NOINLINE void round_weighted(const Values<kSubBlocks>& scales, const Values<kSubBlocks>& weights,
                                  RoundedScales<kSubBlocks>* rounded) {
  Float x[kSubBlocks], w[kSubBlocks];
  scales.by_blocks(x);
  weights.by_blocks(w);
  const auto codes = fit_positive<kSubBlocks, kMost>(x, w);
  const Float unit = with_sign_of_nan(codes.scale());
  for (int b = 0; b < kLanes; ++b) {
    for (int j = 0; j < kSubBlocks; ++j) {
      const Int code = kLimits ? min(codes.code[j], splat(kMost)) : codes.code[j];
      rounded[b].code[j] = static_cast<uint8_t>(code[b]);
    }
    rounded[b].unit = float_to_half(unit[b]);
  }
}

/** Packs the codes of scales and minima, and takes those that a decoder finds there: a code of more bits than
 * there is room for changes others. */
GGUF_INLINE void pack_scales(BlockQ2_K* y, uint8_t* scale, uint8_t* minimum) {
  for (int j = 0; j < 16; ++j) {
    y->scales[j] = static_cast<uint8_t>(scale[j] | minimum[j] << 4);
    scale[j] = y->scales[j] & 15;
    minimum[j] = y->scales[j] >> 4;
  }
}
template <class Block>
GGUF_INLINE void pack_scales(Block* y, uint8_t* scale, uint8_t* minimum) {
  uint8_t* to = y->scales;
  for (int j = 0; j < 4; ++j) {
    to[j] = static_cast<uint8_t>(scale[j] | scale[j + 4] >> 4 << 6);
    to[j + 4] = static_cast<uint8_t>(minimum[j] | minimum[j + 4] >> 4 << 6);
    to[j + 8] = static_cast<uint8_t>((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
    scale[j] = to[j] & 63;
    minimum[j] = to[j + 4] & 63;
    scale[j + 4] = static_cast<uint8_t>((to[j + 8] & 15) | to[j] >> 6 << 4);
    minimum[j + 4] = static_cast<uint8_t>(to[j + 8] >> 4 | to[j + 4] >> 6 << 4);
  }
}

GGUF_INLINE void pack_codes(BlockQ2_K* y, uint8_t* codes) {
  pack_crumbs(y->q, codes);
}
GGUF_INLINE void pack_codes(BlockQ4_K* y, uint8_t* codes) {
  pack_nibbles(y->q, codes);
}
GGUF_INLINE void pack_codes(BlockQ5_K* y, uint8_t* codes) {
  pack_nibbles(y->q, codes);
  pack_bits<4>(y->qh, codes);
}

/** The codes of a search, whose scale became 0. */
template <int kColumns, int kMost>
GGUF_NOINLINE void codes_of_search(const float* x, float inverse, float least, uint8_t* codes) {
  for (int i = 0; i < kColumns; ++i) {
    const int32_t code = nearest_int(inverse * (x[i] - least));
    codes[i] = static_cast<uint8_t>(code < 0 ? 0 : code < kMost ? code : kMost);
  }
}

template <class Block>
GGUF_NOINLINE void finish_affine(const float* x,
                                 const AffineFits<kBlock / AffineFormat<Block>::kColumns>& fits, int b,
                                 RoundedScales<kBlock / AffineFormat<Block>::kColumns>& scales,
                                 RoundedScales<kBlock / AffineFormat<Block>::kColumns>& minima, Block* y) {
  using Format = AffineFormat<Block>;
  constexpr int kColumns = Format::kColumns, kSubBlocks = kBlock / kColumns;
  put_half(y->d, scales.unit);
  put_half(y->dmin, minima.unit);
  pack_scales(y, scales.code, minima.code);
  const float unit = scales.value(), minimum_unit = minima.value();
  uint8_t codes[kBlock];
  for (int j = 0; j < kSubBlocks; ++j, x += kColumns) {
    uint8_t* const to = codes + j * kColumns;
    const float d = unit * scales.code[j];
    if (d == 0.0f) {
      codes_of_search<kColumns, Format::kMost>(x, fits.inverse.block(b)[j], fits.least.block(b)[j], to);
    } else {
      round_codes<kColumns, 0, Format::kMost>(x, minimum_unit * minima.code[j], d, to);
    }
  }
  pack_codes(y, codes);
}

template <class Block>
void encode_affine(const float* x, const float* importance, uint64_t n_blocks, Block* dst, Search search) {
  using Format = AffineFormat<Block>;
  constexpr int kColumns = Format::kColumns, kSubBlocks = kBlock / kColumns, kMost = Format::kMost;
  constexpr int kMostScale = Format::kMostScale;
  for_groups<kLanes>(x, importance, n_blocks, dst, [&](const Group& group, Block* y) {
    AffineFits<kSubBlocks> fits = {};
    RoundedScales<kSubBlocks> scales[kLanes], minima[kLanes];
    float sigma2[kLanes] = {};
    if (group.importance == nullptr) {
      search_affine<kColumns, Format::kError>(group, sigma2, Format::kSteps, fits);
      for (int b = 0; b < group.n_blocks; ++b) {
        scales[b] = round_to_greatest<kMostScale, kSubBlocks>(fits.scale.block(b));
        minima[b] = round_to_greatest<kMostScale, kSubBlocks>(fits.minimum.block(b));
      }
    } else {
      store(sigma2, splat(Format::kSigmaFactor) * sums_of_squares(group.x) / splat(256.0f));
      search_affine<kColumns, Error::kSquares>(group, sigma2, Steps{kMost, -0.9f, 0.05f, 36}, fits);
      round_weighted<kMostScale, kMost == 31>(fits.scale, fits.weight, scales);
      round_weighted<kMostScale, kMost == 31>(fits.minimum, fits.weight, minima);
    }
    if (search == Search::kBest && group.importance == nullptr) {
      improve_affine<kColumns, Format::kError>(group, sigma2, kMost, kMostScale, scales, minima);
    } else if (search == Search::kBest) {
      improve_affine<kColumns, Error::kSquares>(group, sigma2, kMost, kMostScale, scales, minima);
    }
    for (int b = 0; b < group.n_blocks; ++b) {
      finish_affine(group.x + b * kBlock, fits, b, scales[b], minima[b], y + b);
    }
  });
}

}  // namespace lanes

template <class Block, int = lanes::AffineFormat<Block>::kColumns>
void encode(const float* x, const float* importance, uint64_t n_blocks, Block* y, Search search) {
  lanes::encode_affine(x, importance, n_blocks, y, search);
}

}  // namespace
}  // namespace gguf
GGUF_SMALLER_END
