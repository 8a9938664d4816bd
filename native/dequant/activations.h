// Rounding vectors to int8: step 1 of the rule of integer_products.h. Plain C++ that compilers vectorize, but
// for the sums of bytes, for every instruction set: each file of isa/ includes this once, after its header of
// simd/.
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
constexpr int kRunsAtOnce = 16;

/** The bits of the largest magnitude of a run; of a NaN, if it has one. */
inline int32_t most_of_run(const float* x) {
  constexpr int kLanes = 8;
  int32_t most[kLanes] = {};
  for (int i = 0; i < RoundedRun::kColumns; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      int32_t bits;
      std::memcpy(&bits, x + i + lane, sizeof bits);
      const int32_t magnitude = bits & 0x7fffffff;
      most[lane] = magnitude > most[lane] ? magnitude : most[lane];
    }
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) {
      most[lane] = most[lane] > most[lane + width] ? most[lane] : most[lane + width];
    }
  }
  return most[0];
}

/** The codes of a run whose scale is that of `factor`; 0 stands for runs of zeros and of what is not finite.
 */
inline void round_run(const float* x, float factor, RoundedRun& run) {
  constexpr int kRun = RoundedRun::kColumns;
  // A number of up to 22 bits plus this one is rounded to an integer, which is in the last bits of the sum.
  constexpr float kRounds = 0x1.8p23f;
  if (factor == 0) {
    std::memset(run.codes, 0, sizeof run.codes);
    run.sums[0] = run.sums[1] = 0;
    return;
  }
  for (int i = 0; i < kRun; ++i) {
    const float rounded = x[i] * factor + kRounds;
    int32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    run.codes[i] = static_cast<int8_t>(bits);  // the last eight bits of kRounds are zeros
  }
  for (int half = 0; half < 2; ++half) run.sums[half] = simd::sum_of_16(run.codes + kRun / 2 * half);
}

/** A Rounder of kernel_table.h. */
inline void round_runs(const float* x, uint64_t n_runs, RoundedRun* runs) {
  constexpr int kRun = RoundedRun::kColumns;
  constexpr int32_t kInfinity = 0x7f800000;
  const float nan = float_of_bits(0x7fc00000);
  while (n_runs > 0) {
    const int n = n_runs < kRunsAtOnce ? static_cast<int>(n_runs) : kRunsAtOnce;
    int32_t most[kRunsAtOnce] = {};
    for (int i = 0; i < n; ++i) most[i] = most_of_run(x + i * kRun);
    float scales[kRunsAtOnce], factors[kRunsAtOnce];
    for (int i = 0; i < kRunsAtOnce; ++i) {
      const float largest = float_of_bits(static_cast<uint32_t>(most[i]));
      const bool is_finite = most[i] < kInfinity, counts = is_finite && largest >= kLeastMagnitude;
      const float divisor = counts ? largest : 127;
      scales[i] = counts ? divisor / 127 : is_finite ? 0 : nan;
      factors[i] = counts ? 127 / divisor : 0;
    }
    for (int i = 0; i < n; ++i) {
      runs[i].scale = scales[i];
      round_run(x + i * kRun, factors[i], runs[i]);
    }
    x += n * kRun;
    runs += n;
    n_runs -= static_cast<uint64_t>(n);
  }
}

}  // namespace
}  // namespace gguf
