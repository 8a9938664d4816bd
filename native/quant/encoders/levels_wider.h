// A wider search for the scales of blocks with one scale: other scales than ggml's are tried, as they are
// stored, and a block is replaced only where its error is less.
//
// The error is the weighted one that ggml's search of the format makes small; where it does not search,
// squares.
#pragma once

#include "quant/encoders/groups.h"
#include "quant/encoders/searches.h"

namespace gguf {
namespace {
namespace lanes {

/** What sums in binary32 may be off, and codes of numbers halfway between two: less is no improvement. */
constexpr float kImproves = 1.0f - 0x1p-14f;

/** Levels of codes that are the integers from `first` to `last`. */
struct LinearLevels {
  int first, last;

  GGUF_INLINE float least() const { return static_cast<float>(first); }
  template <class V>
  GGUF_INLINE V nearest(const V& x) const {
    return nearest_between(x, first, last);
  }
  GGUF_INLINE Int code(Float x) const { return to_int(nearest(x)) - splat(first); }
  GGUF_INLINE int level(int code) const { return code + first; }
};

/** Numbers as binary16 holds them. */
GGUF_INLINE Float through_half(Float x) {
  float numbers[kLanes];
  store(numbers, x);
  for (float& number : numbers) number = half_to_float(float_to_half(number));
  return load(numbers);
}

/** The sum of the weighted squared errors of 32 numbers that a block has levels times d for. */
template <class Level>
GGUF_INLINE Float error_of(const Float* x, const Float* w, Float d, Level level) {
  Float sum = splat(0.0f);
  for (int j = 0; j < 32; ++j) {
    const Float difference = d * level(j) - x[j];
    sum += w[j] * (difference * difference);
  }
  return sum;
}

/** Improves kLanes blocks y of 32 codes of four bits and a scale. */
template <class Levels, class Block>
GGUF_NOINLINE void improve_levels(const Levels& of_codes, const Float* x, const Float* w, Block* y) {
  constexpr int kSteps = 8;
  float scales[kLanes], levels[32][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    uint16_t half;
    std::memcpy(&half, y[lane].d, sizeof half);
    scales[lane] = half_to_float(half);
    for (int j = 0; j < 16; ++j) {
      levels[j][lane] = static_cast<float>(of_codes.level(y[lane].q[j] & 15));
      levels[j + 16][lane] = static_cast<float>(of_codes.level(y[lane].q[j] >> 4));
    }
  }
  const Float zero = splat(0.0f), one = splat(1.0f), most = greatest<32>(x);
  Float best = splat(kImproves) *
               error_of(x, w, load(scales), [&](int j) GGUF_INLINE_LAMBDA { return load(levels[j]); });
  Float to_best = zero, scale = zero;
  const Mask is_something = abs(most) >= splat(kLeastMagnitude);
  for (const float sign : {1.0f, -1.0f}) {
    for (int step = 0; step < kSteps; ++step) {
      // The extreme number gets the least level, or the one on the other side, times 0.8 to 1.15.
      const float factor = 0.80f + 0.05f * static_cast<float>(step);
      const Float inverse = splat(sign * factor * of_codes.least()) / most;
      Float sum_xl = zero, sum_l2 = zero;
      for (int j = 0; j < 32; ++j) {
        const Float l = of_codes.nearest(inverse * x[j]), wl = w[j] * l;
        sum_xl += wl * x[j];
        sum_l2 += wl * l;
      }
      // The scale that fits these levels best.
      const Float d = through_half(sum_xl / sum_l2), to_levels = one / d;
      const Float error =
          error_of(x, w, d, [&](int j) GGUF_INLINE_LAMBDA { return of_codes.nearest(to_levels * x[j]); });
      const Mask is_less = (error < best) & (abs(to_levels) < splat(INFINITY)) & is_something;
      best = select(is_less, error, best);
      scale = select(is_less, d, scale);
      to_best = select(is_less, to_levels, to_best);
    }
  }
  const Mask is_better = to_best != zero;
  if (!any(is_better)) return;
  Int words[4];
  pack_nibbles(words, [&](int j) GGUF_INLINE_LAMBDA { return of_codes.code(to_best * x[j]); });
  Block better[kLanes];
  put_halves(scale, better->d, sizeof *better);
  put_words<4>(words, better->q, sizeof *better);
  int32_t chosen[kLanes];
  store(chosen, is_better);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (chosen[lane] != 0) y[lane] = better[lane];
  }
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
