// A wider search for the scales of K-quants and IQ4_XS: from those that ggml finds on, with less error.
//
// The error is the weighted one that ggml's search of the format makes small (see own_weights and
// scale_weights), but of what the block stores: with rounded scales. Around ggml's block other units of the
// scales are tried, with each of them other codes of every sub-block's scale, and with each of these the
// numbers are rounded again. Scales are replaced only where the block's error is less.
//
// Sums over the sub-blocks of a block are made in their order, so that no instruction set changes a bit.
#pragma once

#include "quant/encoders/k_groups.h"
#include "quant/encoders/levels_wider.h"

GGUF_SMALLER_BEGIN
namespace gguf {
namespace {
namespace lanes {

/** Codes of scales, and the error with them, of each sub-block. */
template <int kSubBlocks>
struct Trial {
  Values<kSubBlocks> scale, minimum, error;

  GGUF_INLINE float error_of(int b) const {
    float sum = 0.0f;
    for (int j = 0; j < kSubBlocks; ++j) sum += error.block(b)[j];
    return sum;
  }
};

/** The scales of a group's blocks that are the best so far. */
template <int kSubBlocks>
class Improvement {
 public:
  Improvement(RoundedScales<kSubBlocks>* scales, int n_blocks) : scales_(scales) {
    for (int b = 0; b < kLanes; ++b) unit_[b] = b < n_blocks ? scales[b].value() : 0.0f;
    for (int i = 0; i < kLanes * kSubBlocks; ++i) {
      const int b = i / kSubBlocks;
      ideal_.of[i] = b < n_blocks ? unit_[b] * scales[b].number(i % kSubBlocks) : 0.0f;
    }
  }

  /** Units to try: those of ggml times a factor, as binary16 holds them. */
  void scale_units(float factor) {
    for (int b = 0; b < kLanes; ++b) tried_[b] = half_to_float(float_to_half(unit_[b] * factor));
  }
  GGUF_INLINE Float2 units(int first) const { return of_blocks<kSubBlocks>(tried_, first); }
  /** The scales that ggml found, in these units: the nearest codes. */
  GGUF_INLINE Float2 codes(int first, int least, int most) const {
    const Float2 ideal = {load(ideal_.of + first), load(ideal_.of + first + kLanes)};
    return nearest_between(ideal / units(first), least, most);
  }
  /** Takes the units and codes that were tried for a block. */
  void take(int b, const Values<kSubBlocks>& codes) {
    scales_[b].unit = float_to_half(tried_[b]);
    for (int j = 0; j < kSubBlocks; ++j) scales_[b].set(j, static_cast<int>(codes.block(b)[j]));
  }

 private:
  RoundedScales<kSubBlocks>* const scales_;
  float unit_[kLanes], tried_[kLanes];
  Values<kSubBlocks> ideal_;
};

/** The weighted error of scale * level - minimum with the nearest levels. */
template <int kColumns, Error kError, class Levels>
GGUF_INLINE Float2 error_with(const Levels& levels, const Float2* x, const Float2* w, const Float2& scale,
                              const Float2& minimum) {
  const Float2 zero = all<Float2>(0.0f);
  const Float2 inverse = select(scale == zero, zero, all<Float2>(1.0f) / scale);
  Float2 sum = zero;
  for (int i = 0; i < kColumns; ++i) {
    const Float2 level = levels.nearest((x[i] + minimum) * inverse);
    const Float2 difference = scale * level - minimum - x[i];
    sum += w[i] * (kError == Error::kSquares ? difference * difference : abs(difference));
  }
  return sum;
}

/** Keeps what has less error. */
GGUF_INLINE void keep_less(const Float2& error, const Float2& scale, const Float2& minimum,
                           Float2& best_error, Float2& best_scale, Float2& best_minimum) {
  const auto less = error < best_error;
  best_error = select(less, error, best_error);
  best_scale = select(less, scale, best_scale);
  best_minimum = select(less, minimum, best_minimum);
}

/** Improves scales and minima, whose codes go from 0 to most_scale; those of numbers from 0 to `most`. */
template <int kColumns, Error kError>
GGUF_NOINLINE void improve_affine(const Group& group, const float* sigma2, int most, int most_scale,
                                  RoundedScales<kBlock / kColumns>* scales,
                                  RoundedScales<kBlock / kColumns>* minima) {
  const int n_blocks = group.n_blocks;
  constexpr int kSubBlocks = kBlock / kColumns, kUnits = 2, kCodes = 2;
  Improvement<kSubBlocks> scale(scales, n_blocks), minimum(minima, n_blocks);
  float best[kLanes];
  Trial<kSubBlocks> trial;
  // First what ggml found, then other units.
  constexpr int kUnitsEach = 2 * kUnits + 1;
  for (int n = -1; n < kUnitsEach * kUnitsEach; ++n) {
    const bool is_first = n < 0;
    const int codes = is_first ? 0 : kCodes;
    const int scale_step = is_first ? 0 : n / kUnitsEach - kUnits;
    const int minimum_step = is_first ? 0 : n % kUnitsEach - kUnits;
    scale.scale_units(1.0f + 0.01f * static_cast<float>(scale_step));
    minimum.scale_units(1.0f + 0.01f * static_cast<float>(minimum_step));
    for (int first = 0; first < n_blocks * kSubBlocks; first += 2 * kLanes) {
      Float2 x[kColumns], w[kColumns];
      load_for_affine<kColumns>(group, sigma2, first, x, w);
      const Float2 d = scale.units(first), m = minimum.units(first);
      const Float2 s0 = scale.codes(first, 0, most_scale), m0 = minimum.codes(first, 0, most_scale);
      Float2 best_s = s0, best_m = m0, least = all<Float2>(INFINITY);
      const Float2 zero = all<Float2>(0.0f), highest = all<Float2>(static_cast<float>(most_scale));
      // A larger scale goes with a larger minimum.
      for (int i = -codes; i <= codes; ++i) {
        for (int j = std::max(i - 1, -codes); j <= std::min(i + 1, codes); ++j) {
          const Float2 s = min(max(s0 + all<Float2>(static_cast<float>(i)), zero), highest);
          const Float2 t = min(max(m0 + all<Float2>(static_cast<float>(j)), zero), highest);
          const Float2 error = error_with<kColumns, kError>(LinearLevels{0, most}, x, w, d * s, m * t);
          keep_less(error, s, t, least, best_s, best_m);
        }
      }
      trial.scale.put(first, best_s);
      trial.minimum.put(first, best_m);
      trial.error.put(first, least);
    }
    for (int b = 0; b < n_blocks; ++b) {
      const float error = trial.error_of(b);
      if (is_first) {
        best[b] = error * kImproves;
      } else if (error < best[b] && scales[b].fits(most_scale) && minima[b].fits(most_scale)) {
        best[b] = error;
        scale.take(b, trial.scale);
        minimum.take(b, trial.minimum);
      }
    }
  }
}

/** Improves scales of levels without a minimum. Codes of scales go from -most_scale to most_scale - 1. */
template <int kColumns, class Levels>
GGUF_NOINLINE void improve_symmetric(const Group& group, const float* sigma2, const Levels& levels,
                                     int most_scale, RoundedScales<kBlock / kColumns>* scales) {
  constexpr int kSubBlocks = kBlock / kColumns, kUnits = 4;
  const int n_blocks = group.n_blocks, n_codes = most_scale == 128 ? 12 : 5;
  Improvement<kSubBlocks> scale(scales, n_blocks);
  float best[kLanes];
  Trial<kSubBlocks> trial;
  for (int n = -kUnits - 1; n <= kUnits; ++n) {
    const bool is_first = n < -kUnits;
    const int codes = is_first ? 0 : n_codes, step = is_first ? 0 : n;
    scale.scale_units(1.0f + 0.02f * static_cast<float>(step));
    for (int first = 0; first < n_blocks * kSubBlocks; first += 2 * kLanes) {
      Float2 x[kColumns], w[kColumns];
      load_weighted<kColumns>(group, sigma2, first, x, w);
      const Float2 d = scale.units(first), s0 = scale.codes(first, -most_scale, most_scale - 1);
      const Float2 lowest = all<Float2>(static_cast<float>(-most_scale));
      const Float2 highest = all<Float2>(static_cast<float>(most_scale - 1)), zero = all<Float2>(0.0f);
      Float2 best_s = s0, least = all<Float2>(INFINITY), none = zero;
      for (int i = -codes; i <= codes; ++i) {
        const Float2 s = min(max(s0 + all<Float2>(static_cast<float>(i)), lowest), highest);
        const Float2 error = error_with<kColumns, Error::kSquares>(levels, x, w, d * s, zero);
        keep_less(error, s, zero, least, best_s, none);
      }
      trial.scale.put(first, best_s);
      trial.error.put(first, least);
    }
    for (int b = 0; b < n_blocks; ++b) {
      const float error = trial.error_of(b);
      if (is_first) {
        best[b] = error * kImproves;
      } else if (error < best[b]) {
        best[b] = error;
        scale.take(b, trial.scale);
      }
    }
  }
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
GGUF_SMALLER_END
