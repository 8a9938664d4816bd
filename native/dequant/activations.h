// Rounding vectors to int8: step 1 of the rule of integer_products.h. Plain C++ that compilers vectorize, for
// every instruction set: each file of isa/ includes this once.
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

/** A Rounder of kernel_table.h. */
inline void round_runs(const float* x, uint64_t n_runs, RoundedRun* runs) {
  constexpr int kRun = RoundedRun::kColumns;
  constexpr uint32_t kInfinity = 0x7f800000, kSign = 0x80000000;
  // A number of up to 22 bits plus this one is rounded to an integer, which is in the last bits of the sum.
  constexpr float kRounds = 0x1.8p23f;
  for (const RoundedRun* const end = runs + n_runs; runs < end; ++runs, x += kRun) {
    int32_t bits[kRun];
    std::memcpy(bits, x, sizeof bits);
    int32_t most = 0;
    for (int i = 0; i < kRun; ++i) {
      const auto magnitude = static_cast<int32_t>(static_cast<uint32_t>(bits[i]) & ~kSign);
      most = magnitude > most ? magnitude : most;
    }
    const float largest = float_of_bits(static_cast<uint32_t>(most));
    if (!(largest >= kLeastMagnitude && most < static_cast<int32_t>(kInfinity))) {
      std::memset(runs->codes, 0, sizeof runs->codes);
      runs->scale = largest < kLeastMagnitude ? 0 : float_of_bits(0x7fc00000);
      runs->sums[0] = runs->sums[1] = 0;
      continue;
    }
    runs->scale = largest / 127;
    const float factor = 127 / largest;
    int32_t codes[kRun];
    for (int i = 0; i < kRun; ++i) {
      const float rounded = x[i] * factor + kRounds;
      int32_t rounded_bits;
      std::memcpy(&rounded_bits, &rounded, sizeof rounded_bits);
      codes[i] = rounded_bits - 0x4b400000;
    }
    for (int i = 0; i < kRun; ++i) runs->codes[i] = static_cast<int8_t>(codes[i]);
    for (int half = 0; half < 2; ++half) {
      int32_t sum = 0;
      for (int i = 0; i < kRun / 2; ++i) sum += codes[kRun / 2 * half + i];
      runs->sums[half] = sum;
    }
  }
}

}  // namespace
}  // namespace gguf
