// The rule of number_products.h, written down a second time, number by number: for the tests and for the
// fuzzer.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "dequant/dequant.h"
#include "dequant/number_products.h"

namespace gguf::test {

/** Where the i-th number of a row that is multiplied is. */
inline size_t position(const Format& format, size_t i) {
  return is_interleaved(format)
             ? i / 256 * 256 + 32 * static_cast<size_t>(kInterleavedOrder[i / 32 % 8]) + i % 32
             : i;
}

inline float number_product(const Format& format, const float* row, const float* x, size_t columns) {
  float sums[64] = {};
  for (size_t i = 0; i < columns; ++i) {
    const size_t at = position(format, i);
    sums[i % 64] = std::fma(row[at], x[at], sums[i % 64]);
  }
  for (size_t half = 32; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
  }
  return sums[0] + 0.0f;
}

/** Of all dequantized rows with all vectors: [vector][row]. */
inline std::vector<float> number_products(const Format& format, const uint8_t* rows, size_t n_rows,
                                          size_t columns, const std::vector<float>& x) {
  std::vector<float> numbers(n_rows * columns), y;
  dequantize(format, Out::kFloat32, Store::kPlain, false, rows, numbers.size() / format.block_elements,
             numbers.data());
  for (size_t v = 0; v < x.size(); v += columns) {
    for (size_t r = 0; r < n_rows; ++r) {
      y.push_back(number_product(format, numbers.data() + r * columns, x.data() + v, columns));
    }
  }
  return y;
}

}  // namespace gguf::test
