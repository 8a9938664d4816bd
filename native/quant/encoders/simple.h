// Formats with linear codes and one scale for a block: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_K and Q1_0. Pictures
// of the blocks are above the kernels that dequantize them (dequant/kernels/simple.h, k_quants.h).
//
// What ggml's reference leaves open is what a conversion to an integer makes of a number that does not fit,
// which occurs where the numbers of a block are so small that the inverse of their scale is infinite. The
// bytes are those that it writes on x86.
#pragma once

#include "quant/encoders.h"
#include "quant/encoders/groups.h"
#include "quant/encoders/levels_wider.h"
#include "quant/encoders/searches.h"

namespace gguf {
namespace {
namespace lanes {

/** Codes of four or five bits. Where `lost` is set, they are 0. */
template <int kBits, class Block>
GGUF_INLINE void put_codes(const Int* codes, Mask lost, Block* y) {
  Int words[4];
  pack_nibbles(words, [&](int j) GGUF_INLINE_LAMBDA { return codes[j] & splat(15); });
  for (Int& word : words) word = word & ~lost;
  put_words<4>(words, y->q, sizeof *y);
  if constexpr (kBits == 5) {
    Int fifth = splat(0);
    for (int j = 0; j < 32; ++j) fifth = fifth | (codes[j] >> 4 & splat(1)) << j;
    fifth = fifth & ~lost;
    put_words<1>(&fifth, y->qh, sizeof *y);
  }
}

/** Codes around zero, of which the number of greatest magnitude gets the lowest. */
template <int kBits, class Block>
GGUF_INLINE void encode_centered(const Columns<Block>& x, Block* y) {
  constexpr int kMiddle = 1 << (kBits - 1);
  const Float d = greatest<32>(x.column) / splat(-1.0f * kMiddle), inverse = inverse_or_0(d);
  Int codes[32];
  for (int j = 0; j < 32; ++j) {
    codes[j] = min(to_int(x[j] * inverse + splat(kMiddle + 0.5f)), splat(2 * kMiddle - 1));
  }
  put_halves(d, y->d, sizeof *y);
  put_codes<kBits>(codes, has_no_inverse(d), y);
}

/** Codes from the minimum up. */
template <int kBits, class Block>
GGUF_INLINE void encode_from_minimum(const Columns<Block>& x, Block* y) {
  constexpr int kMost = (1 << kBits) - 1;
  Float least = splat(FLT_MAX), most = splat(-FLT_MAX);
  for (int j = 0; j < 32; ++j) {
    least = min(x[j], least);
    most = max(x[j], most);
  }
  const Float d = (most - least) / splat(1.0f * kMost), inverse = inverse_or_0(d);
  Int codes[32];
  for (int j = 0; j < 32; ++j) {
    codes[j] = min(to_int((x[j] - least) * inverse + splat(0.5f)), splat(kMost));
  }
  put_halves(d, y->d, sizeof *y);
  put_halves(least, y->m, sizeof *y);
  put_codes<kBits>(codes, splat(0), y);
}

/** The scale with the least weighted error, and codes around zero. Where all numbers are about 0, codes are
 * 0. */
template <int kBits, class Block>
GGUF_INLINE void encode_centered(const Columns<Block>& x, const Float* w, Block* y) {
  constexpr int kMiddle = 1 << (kBits - 1);
  const Symmetric fit = fit_symmetric<32, kMiddle>(x.column, w);
  Int codes[32];
  for (int j = 0; j < 32; ++j) {
    codes[j] = clamp(nearest_int(fit.inverse * x[j]), -kMiddle, kMiddle - 1) + splat(kMiddle);
  }
  put_halves(with_sign_of_nan(fit.scale), y->d, sizeof *y);
  put_codes<kBits>(codes, fit.inverse == splat(0.0f), y);
}

/** A wider search for the scale, with squared errors or weighted ones. */
GGUF_INLINE void improve(const Columns<BlockQ4_0>& x, const Float* w, BlockQ4_0* y) {
  improve_levels(LinearLevels{-8, 7}, x.column, w, y);
}
GGUF_INLINE void improve(const Columns<BlockQ4_0>& x, BlockQ4_0* y) {
  Float w[32];
  for (Float& weight : w) weight = splat(1.0f);
  improve(x, w, y);
}

/** The scale and the minimum with the least weighted error. */
template <int kBits, class Block>
GGUF_INLINE void encode_from_minimum(const Columns<Block>& x, const Float* w, Block* y) {
  constexpr int kMost = (1 << kBits) - 1;
  const Affine fit = fit_affine<32, Error::kSquares>(x.column, w, Steps{kMost, -0.9f, 0.05f, 36});
  Int codes[32];
  for (int j = 0; j < 32; ++j) codes[j] = clamp(nearest_int(fit.inverse * (x[j] - fit.least)), 0, kMost);
  put_halves(fit.scale, y->d, sizeof *y);
  put_halves(negated(fit.minimum), y->m, sizeof *y);
  put_codes<kBits>(codes, splat(0), y);
}

/**
 * `encode(columns, y)` for groups of kLanes blocks of a row; with importance `encode(columns, weights, y)`:
 * errors count the more, the greater the number and sigma2, the mean square of the row.
 */
template <class Block, class Encode>
GGUF_INLINE void encode_row(const float* row, const float* row_importance, uint64_t n_blocks, Block* row_y,
                            Encode encode) {
  const uint64_t n = n_blocks * Block::kElements;
  const float sigma2 = row_importance == nullptr ? 0 : sum_of_squares(row, n) / static_cast<float>(n);
  for_whole_groups<kLanes>(row, row_importance, n_blocks, row_y,
                           [=](const float* numbers, const float* importance, Block* y) GGUF_INLINE_LAMBDA {
                             const Columns<Block> x(numbers);
                             if (importance == nullptr) {
                               encode(x, y);
                               return;
                             }
                             Float w[Block::kElements];
                             load_columns<Block::kElements>(importance, w);
                             scale_weights<Block::kElements>(x.column, splat(sigma2), w);
                             encode(x, w, y);
                           });
}

GGUF_INLINE void encode_columns(const Columns<BlockQ8_0>& x, BlockQ8_0* y) {
  const Float d = greatest_magnitude<32>(x.column) / splat(127.0f), inverse = inverse_or_0(d);
  Int words[8];
  for (int w = 0; w < 8; ++w) {
    words[w] =
        word_of([&](int i) GGUF_INLINE_LAMBDA { return rounded(x[4 * w + i] * inverse) & splat(255); });
  }
  put_halves(d, y->d, sizeof *y);
  put_words<8>(words, y->q, sizeof *y);
}

/** The number of greatest magnitude gets the code -127. A scale of binary32, and the sum of each 16 codes. */
GGUF_INLINE void encode_columns(const Columns<BlockQ8_K>& x, BlockQ8_K* y) {
  const Float most = greatest<256>(x.column), zero = splat(0.0f);
  const Mask is_zero = most == zero;
  const Float inverse = select(is_zero, zero, splat(-127.0f) / most);
  const Int d = bits_of(select(is_zero, zero, splat(1.0f) / inverse));
  Int words[64], sums[16];
  for (int w = 0; w < 64; ++w) {
    if (w % 4 == 0) sums[w / 4] = splat(0);
    words[w] = word_of([&](int i) GGUF_INLINE_LAMBDA {
      // An infinite number becomes a code with zeros in its last byte.
      const Int byte = min(nearest_int(inverse * x[4 * w + i]), splat(127)) & splat(255);
      sums[w / 4] = sums[w / 4] + ((byte ^ splat(128)) - splat(128));
      return byte;
    });
  }
  Int pairs[8];
  for (int i = 0; i < 8; ++i) pairs[i] = (sums[2 * i] & splat(0xffff)) | sums[2 * i + 1] << 16;
  put_words<1>(&d, y->d, sizeof *y);
  put_words<64>(words, y->q, sizeof *y);
  put_words<8>(pairs, y->sums, sizeof *y);
}

/** Signs, and the average magnitude. */
GGUF_INLINE void encode_columns(const Columns<BlockQ1_0>& x, BlockQ1_0* y) {
  Float sum = splat(0.0f);
  for (int j = 0; j < 128; ++j) sum += abs(x[j]);
  Int words[4];
  for (int w = 0; w < 4; ++w) {
    words[w] = splat(0);
    for (int i = 0; i < 32; ++i) {
      words[w] = words[w] | ((x[32 * w + i] >= splat(0.0f)) & splat(static_cast<int32_t>(1u << i)));
    }
  }
  put_halves(sum / splat(128.0f), y->d, sizeof *y);
  put_words<4>(words, y->q, sizeof *y);
}

}  // namespace lanes

void encode(const float* x, const float* importance, uint64_t n_blocks, BlockQ4_0* y, Search search) {
  lanes::encode_row(x, importance, n_blocks, y, [=](const auto&... of) GGUF_INLINE_LAMBDA {
    lanes::encode_centered<4>(of...);
    if (search == Search::kBest) lanes::improve(of...);
  });
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockQ4_1* y) {
  lanes::encode_row(x, importance, n_blocks, y,
                    [](const auto&... of) GGUF_INLINE_LAMBDA { lanes::encode_from_minimum<4>(of...); });
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockQ5_0* y) {
  lanes::encode_row(x, importance, n_blocks, y,
                    [](const auto&... of) GGUF_INLINE_LAMBDA { lanes::encode_centered<5>(of...); });
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockQ5_1* y) {
  lanes::encode_row(x, importance, n_blocks, y,
                    [](const auto&... of) GGUF_INLINE_LAMBDA { lanes::encode_from_minimum<5>(of...); });
}

}  // namespace
}  // namespace gguf
