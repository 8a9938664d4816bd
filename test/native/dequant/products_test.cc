// Products against the rule of products.h, written down a second time: to the bit, for every format on every
// instruction set, however many vectors and wherever rows are split.
#include "dequant/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "test/native/dequant/number_rule.h"
#include "test/native/dequant/product_support.h"
#include "test/native/dequant/test_isas.h"

namespace gguf::test {
namespace {

/** Lengths of rows: whole groups, parts of groups, and for single numbers any. */
std::vector<uint64_t> lengths(const Format& format) {
  const uint64_t block = format.block_elements;
  if (block == 1) return {1, 3, 64, 100, 300, 1027, 4200};
  if (block == 256) return {256, 1280, 4352};
  return {block, 1024, 512 + 5 * block, 4096 + 3 * block};
}

const ProductRule kRule = {Activations::kFloat32, std::vector<Format>(formats().begin(), formats().end()),
                           lengths, number_products};

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

}  // namespace
}  // namespace gguf::test
