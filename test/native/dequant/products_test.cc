// Products against the rule of products.h, written down a second time: to the bit, for every format on every
// instruction set, however many vectors and wherever rows are split.
#include "dequant/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "test/native/dequant/product_support.h"
#include "test/native/dequant/put_order.h"
#include "test/native/dequant/test_isas.h"

namespace gguf::test {
namespace {

Numbers expected_products(const Format& format, const uint8_t* rows, uint64_t n_rows, uint64_t columns,
                          const Numbers& x) {
  const uint64_t n = x.size() / columns;
  Numbers w(n_rows * columns), y(n * n_rows);
  dequantize(format, Out::kFloat32, Store::kPlain, false, rows, w.size() / format.block_elements, w.data());
  const std::vector<int> extents = put_order(format);
  for (uint64_t v = 0; v < n; ++v) {
    for (uint64_t r = 0; r < n_rows; ++r) {
      float p[64] = {};
      const uint64_t group = extents.size() * 32;
      uint64_t i = 0;
      for (uint64_t start = 0; start < columns; start += group) {
        for (int at : extents) {
          for (uint64_t c = start + static_cast<uint64_t>(at); c < start + static_cast<uint64_t>(at) + 32;
               ++c, ++i) {
            if (c < columns) p[i % 64] = std::fmaf(w[r * columns + c], x[v * columns + c], p[i % 64]);
          }
        }
      }
      for (int h = 32; h >= 1; h /= 2) {
        for (int k = 0; k < h; ++k) p[k] = p[k] + p[k + h];
      }
      y[v * n_rows + r] = p[0] + 0.0f;
    }
  }
  return y;
}

/** Lengths of rows: whole groups, parts of groups, and for single numbers any. */
std::vector<uint64_t> lengths(const Format& format) {
  const uint64_t block = format.block_elements;
  if (block == 1) return {1, 3, 64, 100, 300, 1027, 4200};
  if (block == 256) return {256, 1280, 4352};
  return {block, 1024, 512 + 5 * block, 4096 + 3 * block};
}

const ProductRule kRule = {Activations::kFloat32, std::vector<Format>(formats().begin(), formats().end()),
                           lengths, expected_products};

Numbers exact_products(const Format& format, const uint8_t* rows, uint64_t n_rows, uint64_t columns,
                       const Numbers& x) {
  return kRule.actual(format, false, rows, n_rows, columns, x, n_rows);
}

class RowProducts : public OnEveryIsa {};

TEST_P(RowProducts, EqualTheRuleForAnyBlocksAndAnyNumberOfVectors) {
  expect_the_rule(kRule);
}

TEST_P(RowProducts, AreTheSameForAnySplitAlignmentAndByteOrder) {
  expect_any_split_alignment_and_byte_order(kRule);
}

TEST_P(RowProducts, ReadNotAByteTooMuch) {
  expect_no_byte_too_much(kRule);
}

TEST_P(RowProducts, OfNothingAreNothing) {
  expect_nothing_of_nothing(kRule);
}

TEST_P(RowProducts, AreCloseToTheExactSum) {
  for (const Format& format : formats()) {
    Random random(format.id + 300);
    const uint64_t columns = 4096, n_rows = 3;
    const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, Blocks::kOrdinary);
    const Numbers x = random.vectors(columns, Blocks::kOrdinary);
    const Numbers y = exact_products(format, bytes.data(), n_rows, columns, x);
    Numbers w(n_rows * columns);
    dequantize(format, Out::kFloat32, Store::kPlain, false, bytes.data(), w.size() / format.block_elements,
               w.data());
    for (uint64_t r = 0; r < n_rows; ++r) {
      double sum = 0, magnitude = 0;
      for (uint64_t c = 0; c < columns; ++c) {
        const double product = static_cast<double>(w[r * columns + c]) * x[c];
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_TRUE(std::isfinite(magnitude)) << format.name;
      EXPECT_GT(magnitude, 0) << format.name;
      EXPECT_LE(std::fabs(y[r] - sum), 2e-6 * magnitude) << format.name;
    }
  }
}

TEST_P(RowProducts, AreNeverMinusZero) {
  const Format& format = *find_format(0);  // F32
  const Numbers w(64, -1.0f), zeros(64, 0.0f);
  const auto* rows = reinterpret_cast<const uint8_t*>(w.data());
  EXPECT_EQ(bits_of_float(exact_products(format, rows, 1, 64, zeros)[0]), 0u);
  // Each product underflows to -0 in its fused multiply-add.
  for (const uint64_t n_rows : {1, 3, 8, 40}) {
    for (const uint64_t n : {1, 2, 20}) {
      const Numbers smallest(64 * n_rows, 0x1p-149f), tenths(64 * n, -0.1f);
      const auto* smallest_rows = reinterpret_cast<const uint8_t*>(smallest.data());
      for (const float y : exact_products(format, smallest_rows, n_rows, 64, tenths)) {
        EXPECT_EQ(bits_of_float(y), 0u) << n_rows << " rows, " << n << " vectors";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, RowProducts, testing::ValuesIn(available_isas()), isa_name_of);

TEST(Products, TakeNumbersInTheOrderInWhichKernelsPutThem) {
  for (const Format& format : formats()) {
    const std::vector<int> order = put_order(format);
    for (size_t i = 0; i < order.size(); ++i) {
      const int extent = is_interleaved(format) ? kInterleavedOrder[i] : static_cast<int>(i);
      EXPECT_EQ(order[i], 32 * extent) << format.name;
    }
  }
}

}  // namespace
}  // namespace gguf::test
