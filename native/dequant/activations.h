// Rounding vectors to int8: step 1 of the rule of integer_products.h. Each file of isa/ includes this once,
// after its header of simd/.
#pragma once

#include <cstdint>
#include <cstring>

#include "dequant/half.h"
#include "dequant/isa/kernel_table.h"

namespace gguf {
namespace {

/** Runs whose largest magnitude is less count as zeros: 127 / it could be infinite, and it / 127 subnormal.
 */
constexpr float kLeastMagnitude = 0x1p-119f;

/** Runs that are rounded together, so that their divisions share registers. */
constexpr int kRunsAtOnce = 8;

/** A Rounder of kernel_table.h. */
inline void round_runs(const float* x, uint64_t n_runs, RoundedRun* runs) {
  constexpr int kRun = RoundedRun::kColumns;
  constexpr int32_t kInfinity = 0x7f800000;
  const float nan = float_of_bits(0x7fc00000);
  while (n_runs > 0) {
    const int n = n_runs < kRunsAtOnce ? static_cast<int>(n_runs) : kRunsAtOnce;
    alignas(64) int32_t most[kRunsAtOnce] = {};
    simd::largest_of_runs(x, n, most);  // of a NaN, if there is one
    float scales[kRunsAtOnce], factors[kRunsAtOnce];
    for (int i = 0; i < kRunsAtOnce; ++i) {
      const float largest = float_of_bits(static_cast<uint32_t>(most[i]));
      const bool is_finite = most[i] < kInfinity, counts = is_finite && largest >= kLeastMagnitude;
      const float divisor = counts ? largest : 127;
      scales[i] = counts ? divisor / 127 : is_finite ? 0 : nan;
      factors[i] = counts ? 127 / divisor : 0;
    }
    for (int i = 0; i < n; ++i) {
      RoundedRun& run = runs[i];
      if (factors[i] != 0) {
        simd::round_run(x + i * kRun, factors[i], run.codes, run.sums);
      } else {
        run = {};  // of zeros, or of what is not finite
      }
      run.scale = scales[i];
    }
    x += n * kRun;
    runs += n;
    n_runs -= static_cast<uint64_t>(n);
  }
}

}  // namespace
}  // namespace gguf
