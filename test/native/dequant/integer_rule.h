// The rule of integer_products.h, written down a second time, number by number: for the tests and for the
// fuzzer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "dequant/dequant.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/kernel_blocks.h"

namespace gguf::test {

/** Formats with a scale for 16 weights. */
inline uint64_t run_of(const Format& format) {
  static const std::set<std::string> short_runs = {"Q2_K",  "Q3_K",  "Q6_K", "IQ2_XS",
                                                   "IQ2_S", "IQ1_M", "NVFP4"};
  return short_runs.count(format.name) != 0 ? 16 : 32;
}

inline bool is_affine(const Format& format) {
  static const std::set<std::string> affine = {"Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"};
  return affine.count(format.name) != 0;
}

/** Weights as levels and scales. */
struct Levels {
  std::vector<int64_t> levels;
  std::vector<float> scales, minima;
};

/** Whether two numbers have the same bits, or both are NaN. */
inline bool is_same_number(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

/** Those that the scalar set unpacks. `are_right`: whether they make the numbers that dequantize gives, in
 * runs that are those of the rule. */
inline Levels levels_of(const Format& format, const uint8_t* blocks, uint64_t n_numbers, bool& are_right) {
  constexpr uint64_t kGroupNumbers = 512;
  const std::string isa = active_isa();
  use_isa("scalar");
  const uint64_t run = run_of(format), n_blocks = n_numbers / format.block_elements;
  std::vector<uint8_t> bytes(n_numbers + kGroupNumbers);
  Levels w;
  w.scales.resize(bytes.size() / run);
  w.minima.resize(bytes.size() / run);
  const FormatKernels& kernels = active_kernels().formats[format.index];
  const CodeFacts facts = kernels.code_facts();
  are_right = static_cast<uint64_t>(facts.run) == run && facts.affine == is_affine(format);
  std::vector<uint8_t> rewritten(rewritten_bytes(format, n_blocks));
  const bool rewrites = needs_rewriting(format, false);
  const uint64_t n_read =
      rewrites ? rewrite_blocks(format, false, blocks, n_blocks, rewritten.data()) : n_blocks;
  kernels.unpack(rewrites ? rewritten.data() : blocks, n_read,
                 {bytes.data(), w.scales.data(), w.minima.data()});
  std::vector<float> numbers(n_numbers);
  dequantize(format, Out::kFloat32, Store::kPlain, false, blocks, n_blocks, numbers.data());
  use_isa(isa.c_str());
  for (uint64_t i = 0; i < n_numbers && are_right; ++i) {
    const int64_t level = static_cast<int8_t>(bytes[i]) - facts.stored_bias;
    w.levels.push_back(level);
    float number = w.scales[i / run] * static_cast<float>(level);
    if (facts.affine) number += w.minima[i / run];
    are_right = is_same_number(number, numbers[i]);
  }
  return w;
}

/** Step 1. */
struct Rounded {
  std::vector<int64_t> codes;
  std::vector<float> scales;
};

inline Rounded rounded(const float* x, uint64_t columns) {
  Rounded r;
  for (uint64_t start = 0; start < columns; start += 32) {
    float largest = 0;
    bool finite = true;
    for (uint64_t c = start; c < start + 32; ++c) {
      finite = finite && std::isfinite(x[c]);
      if (finite) largest = std::max(largest, std::fabs(x[c]));
    }
    const bool zeros = !finite || largest < std::ldexp(1.0f, -119);
    r.scales.push_back(!finite ? std::nanf("") : zeros ? 0 : largest / 127);
    for (uint64_t c = start; c < start + 32; ++c) {
      const float factor = 127 / largest;
      const float product = x[c] * factor;
      r.codes.push_back(zeros ? 0 : std::llrint(product));  // halves to even
    }
  }
  return r;
}

/** The products of one row with one rounded vector: steps 2 to 4. `is_exact`: whether all sums are below
 * 2^24. */
inline float integer_product(const Format& format, const Levels& w, uint64_t row, const Rounded& vector,
                             bool& is_exact) {
  const uint64_t run = run_of(format), columns = vector.codes.size();
  float p[16] = {};
  for (uint64_t r = 0; r < columns / run; ++r) {
    int64_t products = 0, codes = 0;
    for (uint64_t c = r * run; c < (r + 1) * run; ++c) {
      products += w.levels[row * columns + c] * vector.codes[c];
      codes += vector.codes[c];
    }
    is_exact = is_exact && std::abs(products) < 1 << 24;
    const uint64_t of_row = row * columns / run + r;
    const float d = vector.scales[r * run / 32];
    const float scale = w.scales[of_row] * d;
    const float term = scale * static_cast<float>(products);
    p[r % 16] = p[r % 16] + term;
    if (is_affine(format)) {
      const float offset = d * static_cast<float>(codes);
      const float second = w.minima[of_row] * offset;
      p[r % 16] = p[r % 16] + second;
    }
  }
  for (int h = 8; h >= 1; h /= 2) {
    for (int i = 0; i < h; ++i) p[i] = p[i] + p[i + h];
  }
  return p[0];
}

}  // namespace gguf::test
