// quantize: against ggml's rounding written down number by number, with what C++ leaves undefined spelled
// out.
#include "quant/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dequant/half.h"

namespace gguf {
namespace {

/** A conversion on x86: 2^31 with a minus where the number does not fit. */
int32_t converted(float x) {
  if (!(x > -2147483904.0f && x < 2147483648.0f)) return INT32_MIN;
  return static_cast<int32_t>(x);
}

int8_t small(float x) {
  return static_cast<int8_t>(converted(x) & 0xff);
}

void put(std::vector<uint8_t>& out, float x) {
  const uint16_t half = float_to_half(x);
  out.push_back(static_cast<uint8_t>(half & 0xff));
  out.push_back(static_cast<uint8_t>(half >> 8));
}

void put_codes(std::vector<uint8_t>& out, const uint8_t* codes, bool five_bits) {
  if (five_bits) {
    uint32_t high = 0;
    for (int j = 0; j < 32; ++j) high |= static_cast<uint32_t>((codes[j] & 16) >> 4) << j;
    for (int k = 0; k < 4; ++k) out.push_back(static_cast<uint8_t>(high >> (8 * k)));
  }
  for (int j = 0; j < 16; ++j) {
    out.push_back(static_cast<uint8_t>((codes[j] & 15) | ((codes[j + 16] & 15) << 4)));
  }
}

/** The block of 32 numbers. */
std::vector<uint8_t> naive(FormatIndex type, const float* x) {
  std::vector<uint8_t> out;
  uint8_t codes[32];
  if (type == kQ8_0) {
    float amax = 0;
    for (int j = 0; j < 32; ++j) {
      const float v = std::fabs(x[j]);
      amax = amax > v ? amax : v;
    }
    const float d = amax / 127;
    const float id = d != 0 ? 1.0f / d : 0.0f;
    put(out, d);
    for (int j = 0; j < 32; ++j) out.push_back(static_cast<uint8_t>(small(std::round(x[j] * id))));
  } else if (type == kQ4_0 || type == kQ5_0) {
    const bool five = type == kQ5_0;
    float amax = 0, max = 0;
    for (int j = 0; j < 32; ++j) {
      if (amax < std::fabs(x[j])) {
        amax = std::fabs(x[j]);
        max = x[j];
      }
    }
    const float d = max / (five ? -16 : -8);
    const float id = d != 0 ? 1.0f / d : 0.0f;
    put(out, d);
    for (int j = 0; j < 32; ++j) {
      codes[j] =
          static_cast<uint8_t>(std::min<int>(five ? 31 : 15, small(x[j] * id + (five ? 16.5f : 8.5f))));
    }
    put_codes(out, codes, five);
  } else {
    const bool five = type == kQ5_1;
    float min = FLT_MAX, max = -FLT_MAX;
    for (int j = 0; j < 32; ++j) {
      if (x[j] < min) min = x[j];
      if (x[j] > max) max = x[j];
    }
    const float d = (max - min) / (five ? 31 : 15);
    const float id = d != 0 ? 1.0f / d : 0.0f;
    put(out, d);
    put(out, min);
    for (int j = 0; j < 32; ++j) {
      codes[j] = static_cast<uint8_t>(std::min<int>(five ? 31 : 15, small((x[j] - min) * id + 0.5f)));
    }
    put_codes(out, codes, five);
  }
  return out;
}

/** Blocks of all kinds of finite numbers: any bits, few magnitudes, halves. Others are refused before. */
std::vector<float> hard_numbers(size_t n_blocks) {
  std::mt19937 random(20);
  std::normal_distribution<float> gaussian;
  std::vector<float> x;
  for (size_t block = 0; block < n_blocks; ++block) {
    const float scale = std::ldexp(1.0f, static_cast<int>(random() % 260) - 130);
    for (int j = 0; j < 32; ++j) {
      const uint32_t bits = random();
      const float values[] = {
          gaussian(random) * scale,
          (static_cast<float>(bits % 512) - 256) / 2 * scale,
          float_of_bits(bits),
          bits % 4 == 0   ? -0.0f
          : bits % 4 == 1 ? 0.0f
                          : gaussian(random) * scale,
          float_of_bits(bits & 0x800fffffu),
      };
      const float value = values[block % (sizeof values / sizeof *values)];
      x.push_back(std::isfinite(value) ? value : 0.0f);
    }
  }
  return x;
}

TEST(Quantize, EqualsGgmlsRounding) {
  constexpr size_t kBlocks = 20000;
  const std::vector<float> x = hard_numbers(kBlocks);
  for (const FormatIndex type : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1}) {
    const Format& format = formats()[type];
    std::vector<uint8_t> out(kBlocks * format.block_bytes + 1);
    uint8_t* const unaligned = out.data() + 1;
    quantize(format, x.data(), nullptr, kBlocks, unaligned);
    for (size_t block = 0; block < kBlocks; ++block) {
      const std::vector<uint8_t> expected = naive(type, x.data() + 32 * block);
      const uint8_t* const actual = unaligned + block * format.block_bytes;
      ASSERT_EQ(std::vector<uint8_t>(actual, actual + format.block_bytes), expected)
          << format.name << ", block " << block;
    }
  }
}

}  // namespace
}  // namespace gguf
