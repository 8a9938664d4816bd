// The searches for scales that several formats share, for kLanes sub-blocks at once. Formulas are ggml's, in
// its order of operations; "weights" are how much errors count.
//
// Codes are not kept: each search returns what they were rounded with. A block's codes are rounded again
// once its scales are, and only where a scale became 0 those of the search stay.
#pragma once

#include "quant/lanes.h"

namespace gguf {
namespace {
namespace lanes {

/** ggml takes smaller numbers for 0. */
constexpr float kLeastMagnitude = 1e-15f;

/** Whether all numbers are about 0, from the greatest of them. */
template <class V>
GGUF_INLINE auto are_none(const V& greatest) {
  return abs(greatest) < all<V>(kLeastMagnitude);
}

/** With importance: weights that are greater where a block's or a number's magnitude is. */
template <int kColumns, class V>
GGUF_INLINE void scale_weights(const V* x, const V& sigma2, V* w) {
  for (int i = 0; i < kColumns; ++i) w[i] = w[i] * sqrt(sigma2 + x[i] * x[i]);
}

/** A scale for codes around 0. */
template <class V>
struct Symmetric {
  V scale;
  /** The codes are clamp(nearest_int(inverse * x)). Where this is 0, all numbers of the lane are about 0. */
  V inverse;
};

/** The number of greatest magnitude of each lane, the first of several. */
template <int kCount, class V>
GGUF_INLINE V greatest(const V* x) {
  V lower = all<V>(0.0f), upper = all<V>(0.0f);
  for (int i = 0; i < kCount; ++i) {
    lower = min(x[i], lower);
    upper = max(x[i], upper);
  }
  if (!any(negated(lower) == upper)) return select(negated(lower) > upper, lower, upper);
  // Both signs have it, or all are 0: the order decides.
  V magnitude = all<V>(0.0f), most = all<V>(0.0f);
  for (int i = 0; i < kCount; ++i) {
    const V a = abs(x[i]);
    const auto greater = a > magnitude;
    magnitude = select(greater, a, magnitude);
    most = select(greater, x[i], most);
  }
  return most;
}

/**
 * The scale for codes from -kMost to kMost - 1 with the least weighted error, of 19 that map the greatest
 * number to about -kMost. The error is least where sum(w x l)^2 / sum(w l^2) is greatest.
 */
template <int kCount, int kMost, class V>
GGUF_INLINE Symmetric<V> fit_symmetric(const V* x, const V* w) {
  const V most = greatest<kCount>(x);
  const auto none = are_none(most);
  V wx[kCount];
  for (int i = 0; i < kCount; ++i) wx[i] = w[i] * x[i];

  // The codes with an inverse scale: sums of w x l and of w l l.
  const auto sums = [&](const V& inverse, V& sum_xl, V& sum_l2) GGUF_INLINE_LAMBDA {
    sum_xl = sum_l2 = all<V>(0.0f);
    for (int i = 0; i < kCount; ++i) {
      const V l = to_float(clamp(nearest_int(inverse * x[i]), -kMost, kMost - 1));
      sum_xl += wx[i] * l;
      sum_l2 += w[i] * l * l;
    }
  };

  Symmetric<V> fit;
  V sum_xl, sum_l2;
  fit.inverse = all<V>(static_cast<float>(-kMost)) / most;
  sums(fit.inverse, sum_xl, sum_l2);
  fit.scale = select(sum_l2 != all<V>(0.0f), sum_xl / sum_l2, all<V>(0.0f));
  V best = fit.scale * sum_xl;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const V inverse = all<V>(-(static_cast<float>(kMost) + 0.1f * static_cast<float>(step))) / most;
    sums(inverse, sum_xl, sum_l2);
    const auto better = (sum_l2 > all<V>(0.0f)) & (sum_xl * sum_xl > best * sum_l2);
    const V scale = sum_xl / sum_l2;
    fit.scale = select(better, scale, fit.scale);
    fit.inverse = select(better, inverse, fit.inverse);
    best = select(better, scale * sum_xl, best);
  }
  fit.scale = select(none, all<V>(0.0f), fit.scale);
  fit.inverse = select(none, all<V>(0.0f), fit.inverse);
  return fit;
}

/** A scale and a minimum, for codes from 0 up: x is about scale * code - minimum. */
template <class V>
struct Affine {
  V scale, minimum;
  /** The codes are clamp(nearest_int(inverse * (x - least))). */
  V inverse, least;
  /** The sum of the weights. */
  V sum_w;
};

/** How errors are measured: of their squares, or of their magnitudes. */
enum class Error { kSquares, kMagnitudes };

/** The scales that are tried for codes from 0 to `most`: those that map the range to `most` + first, and so
 * on in n_steps steps of `step`. */
struct Steps {
  int most;
  float first, step;
  int n_steps;
};

/**
 * The scale and the minimum with the least weighted error. For each range that is tried, codes are rounded,
 * and the two that fit them best computed: least squares. A minimum that is better also moves the ranges that
 * are tried afterwards.
 */
template <int kCount, Error kError, class V>
GGUF_INLINE Affine<V> fit_affine(const V* x, const V* w, const Steps& steps) {
  const V zero = all<V>(0.0f);
  V least = x[0], most = x[0], sum_w = w[0], sum_x = w[0] * x[0];
  for (int i = 1; i < kCount; ++i) {
    least = min(x[i], least);
    most = max(x[i], most);
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  least = select(least > zero, zero, least);
  const auto flat = most == least;

  V codes[kCount];
  const auto round = [&](V inverse, int i) GGUF_INLINE_LAMBDA {
    return codes[i] = to_float(clamp(nearest_int(inverse * (x[i] - least)), 0, steps.most));
  };
  const auto error = [&](V scale, V minimum) GGUF_INLINE_LAMBDA {
    V sum = zero;
    for (int i = 0; i < kCount; ++i) {
      const V difference = scale * codes[i] + minimum - x[i];
      sum += w[i] * (kError == Error::kSquares ? difference * difference : abs(difference));
    }
    return sum;
  };

  Affine<V> fit;
  fit.inverse = select(flat, zero, all<V>(static_cast<float>(steps.most)) / (most - least));
  fit.least = least;
  fit.scale = select(flat, zero, all<V>(1.0f) / fit.inverse);
  for (int i = 0; i < kCount; ++i) round(fit.inverse, i);
  V best = select(flat, all<V>(-INFINITY), error(fit.scale, least));  // nothing is better
  for (int step = 0; step <= steps.n_steps; ++step) {
    const float range = steps.first + steps.step * static_cast<float>(step) + static_cast<float>(steps.most);
    const V inverse = all<V>(range) / (most - least);
    V sum_l = zero, sum_l2 = zero, sum_xl = zero;
    for (int i = 0; i < kCount; ++i) {
      const V l = round(inverse, i), wl = w[i] * l;
      sum_l += wl;
      sum_l2 += wl * l;
      sum_xl += wl * x[i];
    }
    const V determinant = sum_w * sum_l2 - sum_l * sum_l;
    const V minimum = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    const auto above = minimum > zero;
    const V scale =
        select(above, sum_xl, sum_w * sum_xl - sum_x * sum_l) / select(above, sum_l2, determinant);
    const V shift = select(above, zero, minimum);
    const V sum = error(scale, shift);
    const auto better = (determinant > zero) & (sum < best);
    best = select(better, sum, best);
    fit.inverse = select(better, inverse, fit.inverse);
    fit.least = select(better, least, fit.least);
    fit.scale = select(better, scale, fit.scale);
    least = select(better, shift, least);
  }
  fit.minimum = negated(least);
  fit.sum_w = sum_w;
  return fit;
}

/** Codes, and what decides how well they fit: the sums of w x l and of w l l. */
template <int kCount, class V>
struct Codes {
  Integers<V> code[kCount];
  V sum_xl, sum_l2;

  GGUF_INLINE V scale() const {
    const V zero = all<V>(0.0f);
    return select(sum_l2 > zero, sum_xl / sum_l2, zero);
  }
};

/**
 * Changes one code after the other to the one that fits best beside the others, if that is better, up to five
 * times around. A lane in which nothing changed stays as it is, so all go on until none changes.
 * `limit` makes a code of an integer, `keep` what of it is stored, `permits` says from the sum of w l l
 * without a code, and with its new value, whether it may change.
 */
template <int kCount, class V, class Limit, class Keep, class Permits>
GGUF_INLINE void refine(Codes<kCount, V>& codes, const V* x, const V* w, Limit limit, Keep keep,
                        Permits permits) {
  const V zero = all<V>(0.0f);
  for (int round = 0; round < 5; ++round) {
    auto changed = all<Integers<V>>(0);
    for (int i = 0; i < kCount; ++i) {
      const V l = to_float(codes.code[i]), wx = w[i] * x[i];
      const V other_xl = codes.sum_xl - wx * l, other_l2 = codes.sum_l2 - w[i] * l * l;
      const auto code = limit(nearest_int(x[i] * other_l2 / other_xl));
      const V k = to_float(code);
      const V sum_xl = other_xl + wx * k, sum_l2 = other_l2 + w[i] * k * k;
      const auto better = (other_xl > zero) & (code != codes.code[i]) & permits(other_l2, sum_l2) &
                          (sum_xl * sum_xl * codes.sum_l2 > codes.sum_xl * codes.sum_xl * sum_l2);
      codes.code[i] = select(better, keep(code), codes.code[i]);
      codes.sum_xl = select(better, sum_xl, codes.sum_xl);
      codes.sum_l2 = select(better, sum_l2, codes.sum_l2);
      changed = changed | better;
    }
    if (!any(changed)) break;
  }
}

/** Codes from -kMost to kMost - 1 for weights that are the squares of the numbers, refined. */
template <int kCount, int kMost, class V>
GGUF_INLINE Codes<kCount, V> fit_codes(const V* x) {
  const V most = greatest<kCount>(x), zero = all<V>(0.0f);
  const auto none = are_none(most);
  const auto limit = [&](const auto& code) GGUF_INLINE_LAMBDA { return clamp(code, -kMost, kMost - 1); };

  Codes<kCount, V> codes;
  V w[kCount];
  codes.sum_xl = codes.sum_l2 = zero;
  const V inverse = all<V>(static_cast<float>(-kMost)) / most;
  for (int i = 0; i < kCount; ++i) {
    codes.code[i] = limit(nearest_int(inverse * x[i]));
    const V l = to_float(codes.code[i]);
    w[i] = x[i] * x[i];
    codes.sum_xl += w[i] * x[i] * l;
    codes.sum_l2 += w[i] * l * l;
  }
  refine(
      codes, x, w, limit, [&](const auto& code) GGUF_INLINE_LAMBDA { return code; },
      [&](const V&, const V& l2) GGUF_INLINE_LAMBDA { return l2 > all<V>(0.0f); });
  codes.sum_xl = select(none, zero, codes.sum_xl);
  codes.sum_l2 = select(none, zero, codes.sum_l2);
  for (int i = 0; i < kCount; ++i) codes.code[i] = select(none, all<Integers<V>>(-kMost), codes.code[i]);
  return codes;
}

/**
 * Codes from 0 to kMost for numbers that are not negative: of nine scales the one with the least weighted
 * error, then refined. ggml keeps codes in bytes: a negative number, which can be left of rounding errors,
 * becomes a large code.
 */
template <int kCount, int kMost, class V>
GGUF_INLINE Codes<kCount, V> fit_positive(const V* x, const V* w) {
  const V zero = all<V>(0.0f);
  const auto limit = [&](const auto& code) GGUF_INLINE_LAMBDA { return min(all<Integers<V>>(kMost), code); };
  const auto keep = [&](const auto& code) GGUF_INLINE_LAMBDA { return code & all<Integers<V>>(0xff); };

  V most = zero;
  for (int i = 0; i < kCount; ++i) most = max(most, x[i]);
  const auto none = most < all<V>(kLeastMagnitude);

  // The error of codes made by `code` with an inverse scale.
  const auto error = [&](const V& inverse, auto code) GGUF_INLINE_LAMBDA {
    const V scale = all<V>(1.0f) / inverse;
    V sum = zero;
    for (int i = 0; i < kCount; ++i) {
      const V difference = x[i] - scale * to_float(code(nearest_int(inverse * x[i])));
      sum += w[i] * difference * difference;
    }
    return sum;
  };
  V inverse = all<V>(static_cast<float>(kMost)) / most;
  V best = error(inverse, keep);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const V other = all<V>(0.1f * static_cast<float>(step) + static_cast<float>(kMost)) / most;
    const V sum = error(other, limit);
    const auto better = sum < best;
    best = select(better, sum, best);
    inverse = select(better, other, inverse);
  }

  Codes<kCount, V> codes;
  codes.sum_xl = codes.sum_l2 = zero;
  for (int i = 0; i < kCount; ++i) {
    const auto code = limit(nearest_int(inverse * x[i]));
    const V l = to_float(code);
    codes.code[i] = keep(code);
    codes.sum_xl += w[i] * x[i] * l;
    codes.sum_l2 += w[i] * l * l;
  }
  refine(codes, x, w, limit, keep,
         [&](const V& l2, const V&) GGUF_INLINE_LAMBDA { return l2 > all<V>(0.0f); });
  codes.sum_xl = select(none, zero, codes.sum_xl);
  codes.sum_l2 = select(none, zero, codes.sum_l2);
  for (int i = 0; i < kCount; ++i) codes.code[i] = select(none, all<Integers<V>>(0), codes.code[i]);
  return codes;
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
