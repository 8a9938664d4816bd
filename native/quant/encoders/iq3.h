// IQ3_XXS and IQ3_S: rows of four magnitudes of three bits. Pictures of the blocks are above the kernels that
// dequantize them (dequant/kernels/codebooks.h).
#pragma once

#include "quant/encoders/codebook_search.h"

namespace gguf {
namespace {
namespace lanes {

struct Iq3 {
  using Rows = Fours;
  using First = NoFirst;
  static constexpr int kCount = 32;
  static constexpr float kStep = 0.2f, kSigma = 2.0f;
  static constexpr Unweighted kUnweighted = Unweighted::kSquares;
};

struct Iq3xxs : Iq3 {
  static constexpr int kTried = 31;
  static constexpr float kLeast = 1e-8f, kFactor = 1.0125f;
  static constexpr Signs kSigns = Signs::kEven;
  static constexpr Again kAgain = Again::kNeighbours;
  static constexpr bool kKeepsZeros = false;
  static const Neighbours& book() { return neighbours_iq3_xxs(); }

  GGUF_INLINE static void put(BlockIQ3_XXS* y, int g, int, const uint32_t* rows, const uint8_t* signs) {
    uint32_t word = 0;
    for (int k = 0; k < 8; ++k) y->rows[8 * g + k] = static_cast<uint8_t>(rows[k]);
    for (int k = 0; k < 4; ++k) word |= static_cast<uint32_t>(signs[k]) << 7 * k;
    std::memcpy(y->signs_and_scales + 4 * g, &word, sizeof word);
  }
  GGUF_INLINE static void put_scale(BlockIQ3_XXS* y, int g, uint32_t code) {
    uint8_t* const last = y->signs_and_scales + 4 * g + 3;
    *last = static_cast<uint8_t>(*last | code << 4);
  }
};

struct Iq3s : Iq3 {
  static constexpr int kTried = 19;
  static constexpr float kLeast = 0.0f, kFactor = 1.033f;
  static constexpr Signs kSigns = Signs::kEight;
  static constexpr Again kAgain = Again::kAllIfNeighbours;
  static constexpr bool kKeepsZeros = true;
  static const Neighbours& book() { return neighbours_iq3_s(); }

  // ggml does not leave room for the rows and signs of groups of zeros, but for the high bits of their rows.
  // What such a block decodes to is wrong; it is what ggml writes.
  GGUF_INLINE static void put(BlockIQ3_S* y, int g, int at, const uint32_t* rows, const uint8_t* signs) {
    uint32_t high = 0;
    for (int k = 0; k < 8; ++k) {
      y->rows[8 * at + k] = static_cast<uint8_t>(rows[k]);
      high |= rows[k] >> 8 << k;
    }
    y->rows_high[g] = static_cast<uint8_t>(high);
    std::memcpy(y->signs + 4 * at, signs, 4);
  }
  GGUF_INLINE static void put_scale(BlockIQ3_S* y, int g, uint32_t code) {
    y->scales[g / 2] = static_cast<uint8_t>(y->scales[g / 2] | code << 4 * (g % 2));
  }
};

}  // namespace lanes

void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ3_XXS* y) {
  lanes::encode_magnitudes<lanes::Iq3xxs>(x, importance, n_blocks, y);
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ3_S* y) {
  lanes::encode_magnitudes<lanes::Iq3s>(x, importance, n_blocks, y);
}

}  // namespace
}  // namespace gguf
