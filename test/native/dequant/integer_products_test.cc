// Products with vectors of 8 bits against the rule of integer_products.h, written down a second time: to the
// bit, for every format on every instruction set, however many vectors and wherever rows are split.
#include "dequant/integer_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "test/native/dequant/integer_rule.h"
#include "test/native/dequant/product_support.h"
#include "test/native/dequant/test_isas.h"

namespace gguf::test {
namespace {

Numbers expected_products(const Format& format, const uint8_t* rows, uint64_t n_rows, uint64_t columns,
                          const Numbers& x) {
  bool is_right = false;
  const Levels w = levels_of(format, rows, n_rows * columns, is_right);
  EXPECT_TRUE(is_right) << format.name;
  Numbers y;
  for (uint64_t v = 0; v < x.size() / columns && is_right; ++v) {
    const Rounded vector = rounded(&x[v * columns], columns);
    for (uint64_t row = 0; row < n_rows; ++row) {
      y.push_back(integer_product(format, w, row, vector, is_right));
    }
  }
  EXPECT_TRUE(is_right) << format.name;
  return y;
}

std::vector<Format> formats_of_codes() {
  std::vector<Format> found;
  for (const Format& format : formats()) {
    if (format.block_elements > 1) found.push_back(format);
  }
  return found;
}

/** Lengths of rows: whole groups and parts of groups, one part of a row and several (1088 is also the
 * distance of rows in memory), one segment and two. */
std::vector<uint64_t> lengths(const Format& format) {
  const uint64_t block = format.block_elements;
  if (block == 256) return {256, 1280, 4352};
  return {block, 576 / block * block, 512 + 5 * block, 1088 / block * block, 4096 + 3 * block};
}

const ProductRule kRule = {Activations::kInt8, formats_of_codes(), lengths, expected_products};

Numbers int8_products(const Format& format, const uint8_t* rows, uint64_t n_rows, uint64_t columns,
                      const Numbers& x) {
  return kRule.actual(format, false, rows, n_rows, columns, x, n_rows);
}

class IntegerRowProducts : public OnEveryIsa {};

TEST_P(IntegerRowProducts, EqualTheRuleForAnyBlocksAndAnyNumberOfVectors) {
  expect_the_rule(kRule);
}

TEST_P(IntegerRowProducts, AreTheSameForAnySplitAlignmentAndByteOrder) {
  expect_any_split_alignment_and_byte_order(kRule);
}

TEST_P(IntegerRowProducts, ReadNotAByteTooMuch) {
  expect_no_byte_too_much(kRule);
}

TEST_P(IntegerRowProducts, OfNothingAreNothing) {
  expect_nothing_of_nothing(kRule);
}

/** A vector whose runs are all of one kind: by number of the run. */
float edge_number(uint64_t run, uint64_t i, Random& random) {
  const float ordinary = random.vectors(1, Blocks::kOrdinary)[0];
  switch (run % 9) {
    case 0:
      return i % 2 ? 0.0f : -0.0f;
    case 1:  // just what counts, if it is the largest
      return i == 7 ? std::ldexp(1.0f, -119) : ordinary * std::ldexp(1.0f, -123);
    case 2:  // just what does not
      return i == 7 ? std::nextafter(std::ldexp(1.0f, -119), 0.0f) : 0;
    case 3:
      return i == 31 ? -std::numeric_limits<float>::max() : ordinary * 0x1p120f;
    case 4:  // halves, which round to even
      return i == 0 ? 127 : static_cast<float>(i) - 15.5f;
    case 5:
      return std::numeric_limits<float>::denorm_min() * static_cast<float>(i);
    case 6:
      return i % 2 ? 3.0f : -3.0f;
    case 7:
      return i == 16 ? 1.0f : 0x1p-30f;
    default:
      return ordinary;
  }
}

TEST_P(IntegerRowProducts, EqualTheRuleForRunsOfEveryKind) {
  for (const Format& format : formats_of_codes()) {
    Random random(format.id + 300);
    const uint64_t columns = 2304, n_rows = 3, n = 3;
    const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, Blocks::kOrdinary);
    Numbers x;
    for (uint64_t i = 0; i < n * columns; ++i) x.push_back(edge_number(i / 32, i % 32, random));
    SCOPED_TRACE(format.name);
    const Numbers expected = expected_products(format, bytes.data(), n_rows, columns, x);
    expect_same(int8_products(format, bytes.data(), n_rows, columns, x), expected);
    const Numbers first(x.begin(), x.begin() + columns);
    expect_same(int8_products(format, bytes.data(), n_rows, columns, first),
                {expected.begin(), expected.begin() + n_rows});
    if (HasFatalFailure()) return;
  }
}

TEST_P(IntegerRowProducts, OfTinyRunsAreZeroBelowTheLeastThatCounts) {
  const Format& format = *find_format(8);  // Q8_0
  Random random(7);
  const uint64_t columns = 512;
  const auto bytes = random.blocks(format, columns / format.block_elements, Blocks::kOrdinary);
  for (const uint64_t kind : {1, 2}) {  // of edge_number: nothing else, which would hide them in the sums
    Numbers x;
    for (uint64_t i = 0; i < columns; ++i) x.push_back(edge_number(kind, i % 32, random));
    const Numbers y = int8_products(format, bytes.data(), 1, columns, x);
    expect_same(y, expected_products(format, bytes.data(), 1, columns, x));
    EXPECT_EQ(y[0] == 0, kind == 2);
  }
}

TEST_P(IntegerRowProducts, OfAVectorThatIsNotFiniteAreNaN) {
  for (const Format& format : formats_of_codes()) {
    const uint64_t columns = 512, n_rows = 2;
    const std::vector<uint8_t> zeros(n_rows * columns / format.block_elements * format.block_bytes);
    for (const float number : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      for (const uint64_t n : {1, 2, 3}) {
        Numbers x(n * columns, 1.0f);
        x[columns - 1] = number;  // of the first vector
        const Numbers y = int8_products(format, zeros.data(), n_rows, columns, x);
        for (uint64_t i = 0; i < n * n_rows; ++i) EXPECT_EQ(std::isnan(y[i]), i < n_rows) << format.name;
      }
    }
  }
}

TEST_P(IntegerRowProducts, OfFormatsWithoutCodesAreThoseOfNumbers) {
  for (const Format& format : formats()) {
    if (format.block_elements > 1) continue;
    Random random(format.id + 400);
    const uint64_t columns = 75, n_rows = 5;
    const auto bytes = random.blocks(format, n_rows * columns, Blocks::kOrdinary);
    const Numbers x = random.vectors(2 * columns, Blocks::kOrdinary);
    expect_same(int8_products(format, bytes.data(), n_rows, columns, x),
                products(format, false, bytes.data(), n_rows, columns, x, n_rows, Activations::kFloat32));
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, IntegerRowProducts, testing::ValuesIn(available_isas()), isa_name_of);

}  // namespace
}  // namespace gguf::test
