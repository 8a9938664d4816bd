// The 32 partial sums of the rules of statistics.h and comparison.h.
#pragma once

#include <cstddef>

namespace gguf {
namespace {

/** Number i of a piece goes to number i % kSums of the partial sums. */
constexpr size_t kSums = 32;

struct PartialSums {
  alignas(64) double x[kSums] = {};

  /** Adds them up: the upper half to the lower half, until there is one. */
  template <size_t kHalf = kSums / 2>
  double total() {
    for (size_t i = 0; i < kHalf; ++i) x[i] += x[i + kHalf];
    if constexpr (kHalf > 1) return total<kHalf / 2>();
    return x[0];
  }
};

}  // namespace
}  // namespace gguf
