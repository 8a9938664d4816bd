// IQ2_XXS, IQ2_XS and IQ2_S: rows of eight magnitudes of two bits. Pictures of the blocks are above the
// kernels that dequantize them (dequant/kernels/codebooks.h).
#pragma once

#include "quant/encoders/codebook_search.h"

namespace gguf {
namespace {
namespace lanes {

/** Scales of IQ2_XXS start from codes 0 to 4 of any numbers, without a book. */
struct FirstOfAnyCodes {
  float scale[kLanes * 8];

  GGUF_NOINLINE void search(Magnitudes* all, int n_blocks) {
    for (int first = 0; first < n_blocks * 8; first += kLanes) {
      // With 16 lanes, there may be a block too little.
      for (int i = n_blocks * kBlock; i < (first + kLanes) * 32; ++i) all->x[i] = all->w[i] = 0.0f;
      Float x[32], w[32];
      load_columns<32>(all->x + first * 32, x);
      load_columns<32>(all->w + first * 32, w);
      store(scale + first, fit_positive<32, 4>(x, w).scale());
    }
  }
  GGUF_INLINE bool start(int group, float* first, float* most) const {
    *first = scale[group];
    *most = *first * 3.0f;
    return !(*most <= 0.0f);
  }
};

struct Iq2 {
  using Rows = Eights;
  static constexpr float kStep = 0.1f;
  // ggml has IQ2_XXS and IQ2_XS only with importance.
  static constexpr Unweighted kUnweighted = Unweighted::kSquaresAndQuarter;
};

struct Iq2xxs : Iq2 {
  using First = FirstOfAnyCodes;
  static constexpr int kCount = 32, kTried = 13;
  static constexpr float kSigma = 1.0f, kLeast = 1e-15f, kFactor = 1.0f;
  static constexpr Signs kSigns = Signs::kEven;
  static constexpr Again kAgain = Again::kAll;
  static constexpr bool kKeepsZeros = false;
  static const Neighbours& book() { return neighbours_iq2_xxs(); }

  GGUF_INLINE static void put(BlockIQ2_XXS* y, int g, int, const uint32_t* rows, const uint8_t* signs) {
    uint32_t words[2] = {};
    for (int k = 0; k < 4; ++k) {
      words[0] |= rows[k] << 8 * k;
      words[1] |= static_cast<uint32_t>(signs[k]) << 7 * k;
    }
    std::memcpy(y->groups + 8 * g, words, sizeof words);
  }
  GGUF_INLINE static void put_scale(BlockIQ2_XXS* y, int g, uint32_t code) {
    y->groups[8 * g + 7] = static_cast<uint8_t>(y->groups[8 * g + 7] | code << 4);
  }
};

struct Iq2xs : Iq2 {
  using First = NoFirst;
  static constexpr int kCount = 16, kTried = 19;
  static constexpr float kSigma = 1.0f, kLeast = 1e-15f, kFactor = 1.0f;
  static constexpr Signs kSigns = Signs::kEven;
  static constexpr Again kAgain = Again::kNeighbours;
  static constexpr bool kKeepsZeros = false;
  static const Neighbours& book() { return neighbours_iq2_xs(); }

  GGUF_INLINE static void put(BlockIQ2_XS* y, int g, int, const uint32_t* rows, const uint8_t* signs) {
    uint16_t words[2];
    for (int k = 0; k < 2; ++k)
      words[k] = static_cast<uint16_t>(rows[k] | static_cast<uint32_t>(signs[k]) << 9);
    std::memcpy(y->rows + 4 * g, words, sizeof words);
  }
  GGUF_INLINE static void put_scale(BlockIQ2_XS* y, int g, uint32_t code) {
    y->scales[g / 2] = static_cast<uint8_t>(y->scales[g / 2] | code << 4 * (g % 2));
  }
};

struct Iq2s : Iq2 {
  using First = NoFirst;
  static constexpr int kCount = 16, kTried = 19;
  static constexpr float kSigma = 2.0f, kLeast = 1e-8f, kFactor = 0.9875f;
  static constexpr Signs kSigns = Signs::kEight;
  static constexpr Again kAgain = Again::kNeighbours;
  static constexpr bool kKeepsZeros = true;
  static const Neighbours& book() { return neighbours_iq2_s(); }

  GGUF_INLINE static void put(BlockIQ2_S* y, int g, int, const uint32_t* rows, const uint8_t* signs) {
    for (int k = 0; k < 2; ++k) {
      const int i = 2 * g + k;
      y->rows[i] = static_cast<uint8_t>(rows[k]);
      y->rows_high[i / 4] = static_cast<uint8_t>(y->rows_high[i / 4] | rows[k] >> 8 << 2 * (i % 4));
      y->signs[i] = signs[k];
    }
  }
  GGUF_INLINE static void put_scale(BlockIQ2_S* y, int g, uint32_t code) {
    y->scales[g / 2] = static_cast<uint8_t>(y->scales[g / 2] | code << 4 * (g % 2));
  }
};

}  // namespace lanes

void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ2_XXS* y) {
  lanes::encode_magnitudes<lanes::Iq2xxs>(x, importance, n_blocks, y);
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ2_XS* y) {
  lanes::encode_magnitudes<lanes::Iq2xs>(x, importance, n_blocks, y);
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ2_S* y) {
  lanes::encode_magnitudes<lanes::Iq2s>(x, importance, n_blocks, y);
}

}  // namespace
}  // namespace gguf
