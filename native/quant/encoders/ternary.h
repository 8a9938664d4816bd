// TQ1_0, TQ2_0 and Q2_0: the greatest magnitude of a block is the scale, and numbers are rounded to -1, 0 or
// 1 times that. Pictures of the blocks are above the kernels that dequantize them (dequant/kernels/ternary.h,
// simple.h).
#pragma once

#include "quant/encoders/groups.h"

namespace gguf {
namespace {
namespace lanes {

/** 0, 1 or 2 for numbers below -1/2, between, and above 1/2, with halves away from zero. */
GGUF_INLINE Int trit(Float x) {
  return splat(1) + (x <= splat(-0.5f)) - (x >= splat(0.5f));
}

GGUF_INLINE void encode_columns(const Columns<BlockTQ2_0>& x, BlockTQ2_0* y) {
  const Float d = greatest_magnitude<256>(x.column), inverse = inverse_or_0(d);
  Int words[16];
  for (int w = 0; w < 16; ++w) {
    words[w] = word_of([&](int i) GGUF_INLINE_LAMBDA {
      const int first = w / 8 * 128 + w % 8 * 4 + i;
      Int byte = splat(0);
      for (int n = 0; n < 4; ++n) byte = byte | trit(x[first + 32 * n] * inverse) << 2 * n;
      return byte;
    });
  }
  put_words<16>(words, y->q, sizeof *y);
  put_halves(d, y->d, sizeof *y);
}

/** kDigits digits in base 3, `step` columns apart, the first one highest, as a fraction of five digits:
 * rounded up to 256ths. */
template <int kDigits>
GGUF_INLINE Int digits(const Float* x, int step, Float inverse) {
  Int value = splat(0);
  for (int n = 0; n < 5; ++n) {
    value = value + value + value;
    if (n < kDigits) value = value + trit(x[n * step] * inverse);
  }
  // (256 * value + 242) / 243, of which 13 * value + 242 / 243 is 0 to 13 and exact in binary32.
  const Float part = to_float((value << 3) + (value << 2) + value + splat(242));
  return value + to_int(part * splat(1.0f / 243) + splat(1.0f / 512));
}

GGUF_INLINE void encode_columns(const Columns<BlockTQ1_0>& x, BlockTQ1_0* y) {
  const Float d = greatest_magnitude<256>(x.column), inverse = inverse_or_0(d);
  Int words[13];
  for (int w = 0; w < 13; ++w) {
    words[w] = word_of([&](int i) GGUF_INLINE_LAMBDA {
      if (w < 8) return digits<5>(x.column + 4 * w + i, 32, inverse);
      if (w < 12) return digits<5>(x.column + 128 + 4 * w + i, 16, inverse);
      return digits<4>(x.column + 240 + i, 4, inverse);
    });
  }
  put_words<12>(words, y->q, sizeof *y);
  put_words<1>(words + 12, y->qh, sizeof *y);
  put_halves(d, y->d, sizeof *y);
}

/** The code of 2 is never used. Where the inverse of the scale is infinite, all codes are 0. */
GGUF_INLINE void encode_columns(const Columns<BlockQ2_0>& x, BlockQ2_0* y) {
  const Float d = greatest_magnitude<64>(x.column), inverse = inverse_or_0(d);
  Int words[4];
  for (int w = 0; w < 4; ++w) {
    words[w] = splat(0);
    for (int i = 0; i < 16; ++i) words[w] = words[w] | trit(x[16 * w + i] * inverse) << 2 * i;
    words[w] = words[w] & ~has_no_inverse(d);
  }
  put_halves(d, y->d, sizeof *y);
  put_words<4>(words, y->q, sizeof *y);
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
