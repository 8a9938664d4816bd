// Norms, activations, softmax, rotations of one vector.
#pragma once

#include "network/elementary.h"
#include "network/kernels.h"

namespace gguf {
namespace {

using lanes::all16;
using lanes::load16;
using lanes::Sixteen;

/** x times a factor, and times the weight of its column unless there are none. */
GGUF_INLINE void scale_and_weigh(const float* x, const float* weight, uint64_t width, float factor,
                                 float* out) {
  const Sixteen factors = all16(factor);
  if (weight == nullptr) {
    lanes::map(x, width, out, [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v * factors; });
  } else {
    lanes::map(x, weight, width, out,
               [&](const Sixteen& v, const Sixteen& w) GGUF_INLINE_LAMBDA { return v * factors * w; });
  }
}

GGUF_INLINE float sum_of_squares(const float* x, uint64_t width) {
  return lanes::sum_of(x, width, 0, [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v * v; });
}

/** 1 / sqrt(sum / width + epsilon) */
GGUF_INLINE float norm_factor(float sum, uint64_t width, float epsilon) {
  return 1.0f / std::sqrt(sum / static_cast<float>(width) + epsilon);
}

void rms_norm(const float* x, const float* weight, uint64_t width, float epsilon, float* out) {
  scale_and_weigh(x, weight, width, norm_factor(sum_of_squares(x, width), width, epsilon), out);
}

void layer_norm(const float* x, const float* weight, const float* bias, uint64_t width, float epsilon,
                float* out) {
  const auto same = [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v; };
  const Sixteen means = all16(lanes::sum_of(x, width, 0, same) / static_cast<float>(width));
  const auto subtract = [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v - means; };
  lanes::map(x, width, out, subtract);
  scale_and_weigh(out, weight, width, norm_factor(sum_of_squares(out, width), width, epsilon), out);
  if (bias == nullptr) return;
  lanes::map(out, bias, width, out,
             [&](const Sixteen& v, const Sixteen& b) GGUF_INLINE_LAMBDA { return v + b; });
}

void normalize(const float* x, uint64_t width, float* out) {
  const float sum = sum_of_squares(x, width);
  scale_and_weigh(x, nullptr, width, sum == 0 ? 1.0f : 1.0f / std::sqrt(sum), out);
}

/** Times `scale`, then cap * tanh(x / cap) unless `cap` is 0. */
GGUF_INLINE void scale_and_cap(const float* x, uint64_t n, float scale, float cap, float* out) {
  const Sixteen scales = all16(scale), caps = all16(cap);
  if (cap == 0) {
    lanes::map(x, n, out, [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v * scales; });
  } else {
    lanes::map(x, n, out,
               [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return caps * lanes::tanh(v * scales / caps); });
  }
}

/** e to the power of what each number exceeds `max` by, into x; returns their sum. */
GGUF_INLINE float exponentiate(float* x, uint64_t n, float max) {
  const Sixteen most = all16(max);
  Sixteen parts = all16(0);
  for (uint64_t i = 0; i < n; i += 16) {
    lanes::Piece piece(x, i, n, -INFINITY);
    const Sixteen power = lanes::exp(load16(piece.x) - most);
    piece.store_to(x + i, power);
    parts = parts + power;
  }
  return lanes::fold(parts);
}

void softmax(const float* x, uint64_t width, float scale, float cap, float* out) {
  scale_and_cap(x, width, scale, cap, out);
  const Sixteen sums = all16(exponentiate(out, width, lanes::max_of(out, width)));
  lanes::map(out, width, out, [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v / sums; });
}

Powers powers(const float* x, uint64_t n) {
  const float max = lanes::max_of(x, n);
  const Sixteen most = all16(max);
  const auto power = [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return lanes::exp(v - most); };
  return {max, lanes::sum_of(x, n, -INFINITY, power)};
}

template <Activation kActivation>
GGUF_INLINE Sixteen activation(const Sixteen& x) {
  const Sixteen one = all16(1.0f);
  if constexpr (kActivation == Activation::kSilu) {
    return x / (one + lanes::exp(lanes::negated(x)));
  } else if constexpr (kActivation == Activation::kGelu) {
    // x (1 + tanh(z)) / 2, with z = sqrt(2 / pi) (x + .044715 x^3), is x / (1 + e^(-2z)).
    const Sixteen cubic = one + all16(0.044714998453855515f) * (x * x);
    return x / (one + lanes::exp(all16(-1.5957691669464111f) * x * cubic));
  } else if constexpr (kActivation == Activation::kGeluErf) {
    return all16(0.5f) * x * (one + lanes::erf(x * all16(0.7071067690849304f)));
  } else if constexpr (kActivation == Activation::kRelu) {
    return lanes::without_negative(x);
  } else if constexpr (kActivation == Activation::kRelu2) {
    const Sixteen positive = activation<Activation::kRelu>(x);
    return positive * positive;
  } else if constexpr (kActivation == Activation::kSigmoid) {
    return one / (one + lanes::exp(lanes::negated(x)));
  } else {
    return lanes::tanh(x);
  }
}

template <Activation kActivation>
void activate(const float* x, const float* up, uint64_t n, float* out) {
  // The same code for both, since there is much of it: times 1 changes nothing.
  const Sixteen one = all16(1.0f);
  for (uint64_t i = 0; i < n; i += 16) {
    lanes::Piece piece(x, i, n, 0);
    const Sixteen factor = up == nullptr ? one : load16(lanes::Piece(up, i, n, 0).x);
    piece.store_to(out + i, activation<kActivation>(load16(piece.x)) * factor);
  }
}

void add(float* x, const float* y, uint64_t n) {
  lanes::map(x, y, n, x, [&](const Sixteen& a, const Sixteen& b) GGUF_INLINE_LAMBDA { return a + b; });
}

void scale(float* x, uint64_t n, float factor) {
  scale_and_weigh(x, nullptr, n, factor, x);
}

template <Pairs kPairs>
void rotate(const float* x, uint64_t pairs, const float* table, float* out) {
  const float *const cosines = table, *const sines = table + pairs;
  uint64_t i = 0;
  if constexpr (kPairs == Pairs::kHalves) {
    for (; i + 16 <= pairs; i += 16) {
      const Sixteen a = load16(x + i), b = load16(x + pairs + i);
      const Sixteen c = load16(cosines + i), s = load16(sines + i);
      lanes::store(out + i, a * c - b * s);
      lanes::store(out + pairs + i, a * s + b * c);
    }
  }
  for (; i < pairs; ++i) {
    const uint64_t first = kPairs == Pairs::kHalves ? i : 2 * i;
    const uint64_t second = kPairs == Pairs::kHalves ? i + pairs : 2 * i + 1;
    const float a = x[first], b = x[second];
    out[first] = a * cosines[i] - b * sines[i];
    out[second] = a * sines[i] + b * cosines[i];
  }
}

}  // namespace
}  // namespace gguf
