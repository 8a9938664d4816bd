// What the tests of both rules of products share: blocks and vectors of any kind, and the products of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "dequant/block_fields.h"
#include "dequant/half.h"
#include "dequant/products.h"
#include "test/native/core/guarded_bytes.h"

namespace gguf::test {

using Numbers = std::vector<float>;

/** Blocks of any bits, or with scales of an ordinary size, so that sums are numbers. */
enum class Blocks { kAny, kOrdinary };

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}

  std::vector<uint8_t> blocks(const Format& format, uint64_t n_blocks, Blocks kind) {
    std::vector<uint8_t> bytes(n_blocks * format.block_bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_() >> 13);
    if (kind == Blocks::kOrdinary) {
      for (uint64_t at = 0; at < bytes.size(); at += format.block_bytes) tame(format, &bytes[at]);
    }
    return bytes;
  }

  /** Ordinary numbers; with any bits, infinities, NaNs, zeros of both signs and subnormal numbers too. */
  Numbers vectors(uint64_t n, Blocks kind) {
    Numbers x(n);
    for (float& number : x) {
      const auto bits = static_cast<uint32_t>(random_());
      number = float_of_bits((bits & 0x80ffffff) | (120 + bits % 8) << 23);
      if (kind == Blocks::kAny && random_() % 400 == 0) {
        constexpr uint32_t kEdges[] = {0, 0x80000000, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7fc00000};
        number = float_of_bits(kEdges[random_() % 7]);
      }
    }
    return x;
  }

 private:
  /** Every number of two bytes becomes a binary16 below 2; so do those of four and eight, as far as they can.
   */
  static void tame(const Format& format, uint8_t* block) {
    const std::string name = format.name;
    if (name == "MXFP4") block[0] = static_cast<uint8_t>(120 + block[0] % 8);
    if (name == "IQ1_M") {  // the top nibbles of its last four words are a binary16
      for (int i = 0; i < 3; ++i) block[49 + 2 * i] &= 0x0f;
      block[55] = static_cast<uint8_t>(0x30 | (block[55] & 0x0f));
    }
    const Fields& fields = fields_of(format);
    for (int r = 0; r < fields.n_runs; ++r) {
      const Fields::Run& run = fields.runs[r];
      for (size_t i = 0; i < run.count; ++i, block += run.width) {
        uint8_t& top = block[run.width - 1];
        const bool is_scale = (i < 2 && run.count < 40 && format.block_elements > 1) || name[0] != 'I';
        if (!is_scale || run.width == 1) continue;
        if (name == "IQ1_M" || (name == "IQ1_S" && r == 2)) continue;
        top = static_cast<uint8_t>((top & 0x83) | 0x38);
        if (run.width == 8) block[6] &= 0x0f;
      }
    }
  }

  std::mt19937 random_;
};

/** Memory that starts at 64 bytes, as Products wants it. */
class Floats {
 public:
  /** NaNs: what is in the memory beforehand must not matter. */
  explicit Floats(uint64_t n) : memory_(n + 16, std::nanf("")) {}
  float* data() {
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (64 - address % 64) % 64 / sizeof(float);
  }

 private:
  Numbers memory_;
};

inline constexpr float kUntouched = -12345;

/** All products: rows are multiplied in parts of `part`, each of which writes its own rows and nothing else.
 */
inline Numbers products(const Format& format, bool big_endian, const uint8_t* rows, uint64_t n_rows,
                        uint64_t columns, const Numbers& x, uint64_t part, Activations activations) {
  const uint64_t n = x.size() / columns, stride = n_rows + 3;
  const Products multiplier(format, big_endian, columns, n, activations);
  Floats packed(multiplier.packed_floats()), scratch(multiplier.scratch_floats());
  multiplier.pack(x.data(), packed.data());
  Numbers y(n * stride, kUntouched);
  const uint64_t row_bytes = columns / format.block_elements * format.block_bytes;
  for (uint64_t r = 0; r < n_rows; r += part) {
    multiplier.multiply(rows + r * row_bytes, std::min(part, n_rows - r), packed.data(), scratch.data(),
                        y.data() + r, stride);
  }
  Numbers result;
  for (uint64_t v = 0; v < n; ++v) {
    result.insert(result.end(), y.data() + v * stride, y.data() + v * stride + n_rows);
    for (uint64_t r = n_rows; r < stride; ++r)
      EXPECT_EQ(y[v * stride + r], kUntouched) << "wrote beside its rows";
  }
  return result;
}

inline void expect_same(const Numbers& actual, const Numbers& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] != actual[i] && expected[i] != expected[i]) continue;
    ASSERT_EQ(bits_of_float(actual[i]), bits_of_float(expected[i]))
        << "product " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

/** All products, in memory beside which nothing can be read. */
inline Numbers guarded_products(const Format& format, const std::vector<uint8_t>& rows, uint64_t n_rows,
                                uint64_t columns, const Numbers& x, Activations activations) {
  const uint64_t n = x.size() / columns;
  const Products multiplier(format, false, columns, n, activations);
  const auto zeros = [](uint64_t n_floats) { return std::vector<uint8_t>(n_floats * sizeof(float)); };
  const auto floats = [](const GuardedBytes& bytes) { return reinterpret_cast<float*>(bytes.data()); };
  const auto guarded = [](const std::vector<uint8_t>& b) { return GuardedBytes(b.data(), b.size()); };
  const GuardedBytes blocks(rows.data(), rows.size()),
      vectors(reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float)),
      packed(guarded(zeros(multiplier.packed_floats()))),
      scratch(guarded(zeros(multiplier.scratch_floats()))), y(guarded(zeros(n * n_rows)));
  multiplier.pack(floats(vectors), floats(packed));
  multiplier.multiply(blocks.data(), n_rows, floats(packed), floats(scratch), floats(y), n_rows);
  return Numbers(floats(y), floats(y) + n * n_rows);
}

/** A rule of products, written down a second time: what the tests of both have in common. */
struct ProductRule {
  Activations activations;
  std::vector<Format> formats;
  /** Lengths of rows to test. */
  std::vector<uint64_t> (*lengths)(const Format&);
  /** The product of dequantized rows with the vectors, by the rule: [vector][row]. */
  Numbers (*by_rule)(const Format&, const uint8_t* rows, uint64_t n_rows, uint64_t columns, const Numbers& x);
  mutable std::map<std::vector<uint64_t>, Numbers> known = {};

  /** The same, of what is made from a seed: once for all instruction sets, since emulators take minutes over
   * it. */
  const Numbers& expected(uint64_t seed, const Format& format, const uint8_t* rows, uint64_t n_rows,
                          uint64_t columns, const Numbers& x) const {
    Numbers& y = known[{seed, format.id, n_rows, columns, x.size()}];
    if (y.empty()) y = by_rule(format, rows, n_rows, columns, x);
    return y;
  }

  Numbers actual(const Format& format, bool big_endian, const uint8_t* rows, uint64_t n_rows,
                 uint64_t columns, const Numbers& x, uint64_t part) const {
    return products(format, big_endian, rows, n_rows, columns, x, part, activations);
  }
};

inline void expect_the_rule(const ProductRule& rule) {
  for (const Format& format : rule.formats) {
    const uint32_t seed = format.id;
    Random random(seed);
    for (const uint64_t columns : rule.lengths(format)) {
      for (const uint64_t n_rows : {5, 19}) {
        const Blocks kind = n_rows == 5 ? Blocks::kAny : Blocks::kOrdinary;
        const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, kind);
        // Few where there is much to compute, since emulators take minutes over it.
        const uint64_t most = n_rows == 19 ? 2 : columns < 600 ? 64 : 13;
        const Numbers x = random.vectors(most * columns, kind);
        const Numbers& expected = rule.expected(seed, format, bytes.data(), n_rows, columns, x);
        for (const uint64_t n : {1, 2, 3, 7, 13, 64}) {
          if (n > most) break;
          SCOPED_TRACE(testing::Message()
                       << format.name << ", " << n_rows << " rows of " << columns << ", " << n << " vectors");
          const auto n_floats = static_cast<ptrdiff_t>(n * columns),
                     n_products = static_cast<ptrdiff_t>(n * n_rows);
          expect_same(rule.actual(format, false, bytes.data(), n_rows, columns,
                                  {x.begin(), x.begin() + n_floats}, n_rows),
                      {expected.begin(), expected.begin() + n_products});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

inline void expect_any_split_alignment_and_byte_order(const ProductRule& rule) {
  for (const Format& format : rule.formats) {
    const uint32_t seed = format.id + 100;
    Random random(seed);
    for (const uint64_t columns : {format.block_elements == 1 ? 75 : 256, 2304}) {
      const uint64_t n_rows = 35, n_blocks = n_rows * columns / format.block_elements;
      const auto bytes = random.blocks(format, n_blocks, Blocks::kOrdinary);
      std::vector<uint8_t> swapped(bytes.size());
      swap_blocks(fields_of(format), bytes.data(), n_blocks, swapped.data());
      const Numbers all = random.vectors(3 * columns, Blocks::kOrdinary);
      for (const uint64_t n : {1, 3}) {
        SCOPED_TRACE(testing::Message() << format.name << ", " << columns << " columns, " << n << " vectors");
        const Numbers x(all.begin(), all.begin() + static_cast<ptrdiff_t>(n * columns));
        const Numbers& expected = rule.expected(seed, format, bytes.data(), n_rows, columns, x);
        for (const uint64_t part : {1, 7, 12, 16, 35}) {
          expect_same(rule.actual(format, false, bytes.data(), n_rows, columns, x, part), expected);
        }
        expect_same(rule.actual(format, true, swapped.data(), n_rows, columns, x, n_rows), expected);
        for (const size_t shift : {1, 2, 33}) {
          std::vector<uint8_t> moved(shift);
          moved.insert(moved.end(), bytes.begin(), bytes.end());
          expect_same(rule.actual(format, false, moved.data() + shift, n_rows, columns, x, n_rows), expected);
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

inline void expect_no_byte_too_much(const ProductRule& rule) {
  for (const Format& format : rule.formats) {
    const uint32_t seed = format.id + 200;
    Random random(seed);
    for (const uint64_t columns : rule.lengths(format)) {
      for (const uint64_t n_rows : {1, 17}) {
        if (n_rows * columns > 30000) continue;  // one row shows how long ones end; emulators take minutes
        const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, Blocks::kOrdinary);
        for (const uint64_t n : {1, 2, 9}) {  // more than a tile has, but that of AMX
          const Numbers x = random.vectors(n * columns, Blocks::kOrdinary);
          const Numbers actual = guarded_products(format, bytes, n_rows, columns, x, rule.activations);
          expect_same(actual, rule.expected(seed, format, bytes.data(), n_rows, columns, x));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

inline void expect_nothing_of_nothing(const ProductRule& rule) {
  const Format& format = *find_format(12);
  EXPECT_TRUE(rule.actual(format, false, nullptr, 0, 256, Numbers(256), 1).empty());
  EXPECT_TRUE(rule.actual(format, false, nullptr, 0, 256, Numbers(768), 1).empty());
  EXPECT_TRUE(rule.actual(format, false, nullptr, 1, 256, {}, 1).empty());
}

}  // namespace gguf::test
