// Products with vectors of 8 bits against the rule of integer_products.h, written down a second time: to the
// bit, for every format on every instruction set, however many vectors and wherever rows are split.
#include "dequant/integer_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "dequant/isa/kernel_table.h"
#include "test/native/core/guarded_bytes.h"
#include "test/native/dequant/product_support.h"
#include "test/native/dequant/test_isas.h"

namespace gguf::test {
namespace {

/** Formats with a scale for 16 weights. */
uint64_t run_of(const Format& format) {
  static const std::set<std::string> short_runs = {"Q2_K",  "Q3_K",  "Q6_K", "IQ2_XS",
                                                   "IQ2_S", "IQ1_M", "NVFP4"};
  return short_runs.count(format.name) != 0 ? 16 : 32;
}

bool is_affine(const Format& format) {
  static const std::set<std::string> affine = {"Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"};
  return affine.count(format.name) != 0;
}

/** Weights as levels and scales. */
struct Levels {
  std::vector<int64_t> levels;
  Numbers scales, minima;
};

/** Those that the scalar set unpacks; they must make the numbers that dequantize gives. */
Levels levels_of(const Format& format, const uint8_t* blocks, uint64_t n_numbers) {
  constexpr uint64_t kGroupNumbers = 512;
  const char* const isa = active_isa();
  EXPECT_TRUE(use_isa("scalar"));
  const uint64_t run = run_of(format), n_blocks = n_numbers / format.block_elements;
  std::vector<uint8_t> bytes(n_numbers + kGroupNumbers);
  Levels w;
  w.scales.resize(bytes.size() / run);
  w.minima.resize(bytes.size() / run);
  const FormatKernels& kernels = active_kernels().formats[format.index];
  const CodeFacts facts = kernels.code_facts();
  EXPECT_EQ(static_cast<uint64_t>(facts.run), run) << format.name;
  EXPECT_EQ(facts.affine, is_affine(format)) << format.name;
  kernels.unpack(blocks, n_blocks, {bytes.data(), w.scales.data(), w.minima.data()});
  Numbers numbers(n_numbers);
  dequantize(format, Out::kFloat32, Store::kPlain, false, blocks, n_blocks, numbers.data());
  use_isa(isa);
  for (uint64_t i = 0; i < n_numbers; ++i) {
    const int64_t level = static_cast<int8_t>(bytes[i]) - facts.bias;
    w.levels.push_back(level);
    float number = w.scales[i / run] * static_cast<float>(level);
    if (facts.affine) number += w.minima[i / run];
    if (number != number && numbers[i] != numbers[i]) continue;
    EXPECT_EQ(bits_of_float(number), bits_of_float(numbers[i])) << format.name << ", number " << i;
  }
  return w;
}

/** Step 1. */
struct Rounded {
  std::vector<int64_t> codes;
  Numbers scales;
};

Rounded rounded(const float* x, uint64_t columns) {
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

Numbers expected_products(const Format& format, const uint8_t* rows, uint64_t n_rows, uint64_t columns,
                          const Numbers& x) {
  const uint64_t n = x.size() / columns, run = run_of(format);
  const Levels w = levels_of(format, rows, n_rows * columns);
  Numbers y;
  for (uint64_t v = 0; v < n; ++v) {
    const Rounded vector = rounded(&x[v * columns], columns);
    for (uint64_t row = 0; row < n_rows; ++row) {
      float p[16] = {};
      for (uint64_t r = 0; r < columns / run; ++r) {
        int64_t products = 0, codes = 0;
        for (uint64_t c = r * run; c < (r + 1) * run; ++c) {
          products += w.levels[row * columns + c] * vector.codes[c];
          codes += vector.codes[c];
        }
        EXPECT_LT(std::abs(products), 1 << 24);
        const uint64_t of_row = (row * columns) / run + r;
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
      y.push_back(p[0]);
    }
  }
  return y;
}

Numbers int8_products(const Format& format, bool big_endian, const uint8_t* rows, uint64_t n_rows,
                      uint64_t columns, const Numbers& x, uint64_t part) {
  return products(format, big_endian, rows, n_rows, columns, x, part, Activations::kInt8);
}

std::vector<Format> formats_of_codes() {
  std::vector<Format> found;
  for (const Format& format : formats()) {
    if (format.block_elements > 1) found.push_back(format);
  }
  return found;
}

/** Lengths of rows: whole groups and parts of groups, one part of a row and several, one segment and two. */
std::vector<uint64_t> lengths(const Format& format) {
  const uint64_t block = format.block_elements;
  if (block == 256) return {256, 1280, 4352};
  return {block, 576 / block * block, 512 + 5 * block, 4096 + 3 * block};
}

class IntegerRowProducts : public OnEveryIsa {};

TEST_P(IntegerRowProducts, EqualTheRuleForAnyBlocksAndAnyNumberOfVectors) {
  for (const Format& format : formats_of_codes()) {
    Random random(format.id);
    for (uint64_t columns : lengths(format)) {
      if (columns == 0) continue;
      for (const uint64_t n_rows : {5, 19}) {
        const Blocks kind = n_rows == 5 ? Blocks::kAny : Blocks::kOrdinary;
        const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, kind);
        const uint64_t most = n_rows == 19 ? 2 : columns < 600 ? 64 : 13;
        const Numbers x = random.vectors(most * columns, kind);
        const Numbers expected = expected_products(format, bytes.data(), n_rows, columns, x);
        for (const uint64_t n : {1, 2, 3, 7, 13, 64}) {
          if (n * columns > x.size()) break;
          SCOPED_TRACE(testing::Message()
                       << format.name << ", " << n_rows << " rows of " << columns << ", " << n << " vectors");
          const auto n_floats = static_cast<ptrdiff_t>(n * columns),
                     n_products = static_cast<ptrdiff_t>(n * n_rows);
          expect_same(int8_products(format, false, bytes.data(), n_rows, columns,
                                    {x.begin(), x.begin() + n_floats}, n_rows),
                      {expected.begin(), expected.begin() + n_products});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(IntegerRowProducts, AreTheSameForAnySplitAlignmentAndByteOrder) {
  for (const Format& format : formats_of_codes()) {
    Random random(format.id + 100);
    for (const uint64_t columns : {256, 2304}) {
      const uint64_t n_rows = 35, n_blocks = n_rows * columns / format.block_elements;
      const auto bytes = random.blocks(format, n_blocks, Blocks::kOrdinary);
      std::vector<uint8_t> swapped(bytes.size());
      swap_blocks(fields_of(format), bytes.data(), n_blocks, swapped.data());
      for (const uint64_t n : {1, 3}) {
        SCOPED_TRACE(testing::Message() << format.name << ", " << columns << " columns, " << n << " vectors");
        const Numbers x = random.vectors(n * columns, Blocks::kOrdinary);
        const Numbers expected = expected_products(format, bytes.data(), n_rows, columns, x);
        for (const uint64_t part : {1, 7, 16, 35}) {
          expect_same(int8_products(format, false, bytes.data(), n_rows, columns, x, part), expected);
        }
        expect_same(int8_products(format, true, swapped.data(), n_rows, columns, x, n_rows), expected);
        for (const size_t shift : {1, 33}) {
          std::vector<uint8_t> moved(shift);
          moved.insert(moved.end(), bytes.begin(), bytes.end());
          expect_same(int8_products(format, false, moved.data() + shift, n_rows, columns, x, n_rows),
                      expected);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
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
    const uint64_t columns = 2304, n_rows = 3, n = 2;
    const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, Blocks::kOrdinary);
    Numbers x;
    for (uint64_t i = 0; i < n * columns; ++i) x.push_back(edge_number(i / 32, i % 32, random));
    SCOPED_TRACE(format.name);
    const Numbers expected = expected_products(format, bytes.data(), n_rows, columns, x);
    expect_same(int8_products(format, false, bytes.data(), n_rows, columns, x, n_rows), expected);
    const Numbers first(x.begin(), x.begin() + columns);
    expect_same(int8_products(format, false, bytes.data(), n_rows, columns, first, n_rows),
                {expected.begin(), expected.begin() + n_rows});
    if (HasFatalFailure()) return;
  }
}

TEST_P(IntegerRowProducts, OfAVectorThatIsNotFiniteAreNaN) {
  for (const Format& format : formats_of_codes()) {
    const uint64_t columns = 512, n_rows = 2;
    const std::vector<uint8_t> zeros(n_rows * columns / format.block_elements * format.block_bytes);
    for (const float number : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
      Numbers x(2 * columns, 1.0f);
      x[columns - 1] = number;  // of the first vector
      const Numbers y = int8_products(format, false, zeros.data(), n_rows, columns, x, n_rows);
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1])) << format.name;
      EXPECT_FALSE(std::isnan(y[2]) || std::isnan(y[3])) << format.name;
      x.resize(columns);
      EXPECT_TRUE(std::isnan(int8_products(format, false, zeros.data(), n_rows, columns, x, n_rows)[0]));
    }
  }
}

TEST_P(IntegerRowProducts, ReadNotAByteTooMuch) {
  for (const Format& format : formats_of_codes()) {
    Random random(format.id + 200);
    for (uint64_t columns : lengths(format)) {
      if (columns == 0) continue;
      for (const uint64_t n_rows : {1, 17}) {
        const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, Blocks::kOrdinary);
        const GuardedBytes blocks(bytes.data(), bytes.size());
        for (const uint64_t n : {1, 2}) {
          const Numbers x = random.vectors(n * columns, Blocks::kOrdinary);
          const GuardedBytes vectors(reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float));
          const Products multiplier(format, false, columns, n, Activations::kInt8);
          const std::vector<uint8_t> zeros(multiplier.packed_floats() * sizeof(float)),
              more_zeros(multiplier.scratch_floats() * sizeof(float)), y_zeros(n * n_rows * sizeof(float));
          const GuardedBytes packed(zeros.data(), zeros.size()),
              scratch(more_zeros.data(), more_zeros.size()), y(y_zeros.data(), y_zeros.size());
          multiplier.pack(reinterpret_cast<const float*>(vectors.data()),
                          reinterpret_cast<float*>(packed.data()));
          multiplier.multiply(blocks.data(), n_rows, reinterpret_cast<const float*>(packed.data()),
                              reinterpret_cast<float*>(scratch.data()), reinterpret_cast<float*>(y.data()),
                              n_rows);
          Numbers actual(n * n_rows);
          std::memcpy(actual.data(), y.data(), y.size());
          expect_same(actual, expected_products(format, bytes.data(), n_rows, columns, x));
          if (HasFatalFailure()) return;
        }
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
    expect_same(int8_products(format, false, bytes.data(), n_rows, columns, x, n_rows),
                products(format, false, bytes.data(), n_rows, columns, x, n_rows, Activations::kFloat32));
  }
}

TEST_P(IntegerRowProducts, OfNothingAreNothing) {
  const Format& format = *find_format(12);
  EXPECT_TRUE(int8_products(format, false, nullptr, 0, 256, Numbers(256), 1).empty());
  EXPECT_TRUE(int8_products(format, false, nullptr, 0, 256, Numbers(512), 1).empty());
  EXPECT_TRUE(int8_products(format, false, nullptr, 1, 256, {}, 1).empty());
}

INSTANTIATE_TEST_SUITE_P(Isas, IntegerRowProducts, testing::ValuesIn(available_isas()), isa_name_of);

}  // namespace
}  // namespace gguf::test
