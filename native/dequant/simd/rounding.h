// Rounding runs of 32 numbers to int8, in plain C++ that compilers vectorize: for sets that gain nothing by
// another way. The last lines of their header include this.
#pragma once

#include <cstring>

namespace gguf {
namespace {
namespace simd {

GGUF_INLINE void largest_of_runs(const float* x, int n, int32_t* most) {
  constexpr int kWidth = 8;
  for (int run = 0; run < n; ++run, x += 32) {
    int32_t of_lane[kWidth] = {};
    for (int i = 0; i < 32; i += kWidth) {
      for (int lane = 0; lane < kWidth; ++lane) {
        int32_t bits;
        std::memcpy(&bits, x + i + lane, sizeof bits);
        const int32_t magnitude = bits & 0x7fffffff;
        of_lane[lane] = magnitude > of_lane[lane] ? magnitude : of_lane[lane];
      }
    }
    for (int width = kWidth / 2; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) {
        of_lane[lane] = of_lane[lane] > of_lane[lane + width] ? of_lane[lane] : of_lane[lane + width];
      }
    }
    most[run] = of_lane[0];
  }
}

GGUF_INLINE void round_run(const float* x, float factor, int8_t* codes, int32_t (&sums)[2]) {
  // A number of up to 22 bits plus this one is rounded to an integer, which is in the last bits of the sum.
  constexpr float kRounds = 0x1.8p23f;
  for (int i = 0; i < 32; ++i) {
    const float rounded = x[i] * factor + kRounds;
    int32_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    codes[i] = static_cast<int8_t>(bits);  // the last eight bits of kRounds are zeros
  }
  for (int half = 0; half < 2; ++half) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += codes[16 * half + i];
    sums[half] = sum;
  }
}

}  // namespace simd
}  // namespace
}  // namespace gguf
