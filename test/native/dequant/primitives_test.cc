// Every primitive of every instruction set that this machine has, on its own, against the scalar one: equal
// to the bit for edge values and for random ones.
#include "test/native/dequant/primitives.h"

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "dequant/dequant.h"

namespace gguf::test {
namespace {

/** What the bytes of an input are. */
enum class Draw {
  kZeros,
  kOnes,
  kTopBits,
  kCounting,
  kUniform,
  kNearHalves,
  kNearBFloats,
  kNearSingles,
  kIntegers,
  kCount
};

class Inputs {
 public:
  PrimitiveInput make(int number) {
    PrimitiveInput in;
    fill(static_cast<Draw>(number % static_cast<int>(Draw::kCount)), in.bytes);
    in.a = any_float();
    in.b = any_float();
    const float integer = static_cast<float>(static_cast<int>(random_() % 128) - 64);
    in.scale = half_to_float(static_cast<uint16_t>(random_())) * (integer == 0 ? 1 : integer);
    return in;
  }

 private:
  template <class Word, class Make>
  void fill_words(uint8_t (&bytes)[640], Make make) {
    for (size_t at = 0; at < sizeof bytes; at += sizeof(Word)) {
      const Word word = make(at / sizeof(Word));
      std::memcpy(bytes + at, &word, sizeof word);
    }
  }

  void fill(Draw draw, uint8_t (&bytes)[640]) {
    const uint64_t start = random_();
    switch (draw) {
      case Draw::kZeros:
        return fill_words<uint8_t>(bytes, [](size_t) { return 0; });
      case Draw::kOnes:
        return fill_words<uint8_t>(bytes, [](size_t) { return 0xff; });
      case Draw::kTopBits:
        return fill_words<uint8_t>(bytes, [&](size_t) { return random_() % 2 ? 0x80 : 0x7f; });
      case Draw::kCounting:
        return fill_words<uint16_t>(bytes, [=](size_t i) { return static_cast<uint16_t>(start + i); });
      case Draw::kNearHalves:
        return fill_words<uint32_t>(bytes, [&](size_t) { return near_tie(13); });
      case Draw::kNearBFloats:
        return fill_words<uint32_t>(bytes, [&](size_t) { return near_tie(16); });
      case Draw::kNearSingles:  // doubles between two binary32, of ordinary size or any
        return fill_words<uint64_t>(bytes, [&](size_t i) {
          const uint64_t half_way = (random_() << 29) + (uint64_t{1} << 28) + random_() % 3 - 1;
          return i % 2 ? half_way : (half_way & ~(uint64_t{0x3ff} << 53)) | uint64_t{0x1ff} << 53;
        });
      case Draw::kIntegers:  // of all sizes, or next to the middle between two binary32
        return fill_words<int64_t>(bytes, [&](size_t i) {
          if (i % 2) return static_cast<int64_t>(random_()) >> random_() % 64;
          const uint64_t upper = (random_() >> 40 << 39) | uint64_t{1} << 62;
          return static_cast<int64_t>((upper & ~(uint64_t{1} << 63)) + (uint64_t{1} << 38) + random_() % 3 -
                                      1);
        });
      default:
        return fill_words<uint64_t>(bytes, [&](size_t) { return random_(); });
    }
  }

  /** A binary32 half-way between two numbers that have `dropped` bits less, or next to it. */
  uint32_t near_tie(int dropped) {
    const auto upper = static_cast<uint32_t>(random_()) >> dropped << dropped;
    const uint32_t half_way = upper + (1u << (dropped - 1)) + static_cast<uint32_t>(random_() % 3) - 1;
    // Half of them of the size of binary16 numbers, down to half its smallest.
    if (random_() % 2) return half_way;
    return (half_way & 0x807fffff) | static_cast<uint32_t>(101 + random_() % 44) << 23;
  }

  float any_float() {
    constexpr uint32_t kEdges[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000, 0x3f800000,
                                   0xbf800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001};
    const uint64_t choice = random_() % 16;
    if (choice < 12) return float_of_bits(kEdges[choice]);
    if (choice < 14) return float_of_bits(static_cast<uint32_t>(random_()));
    return half_to_float(static_cast<uint16_t>(random_()));
  }

  std::mt19937_64 random_{1};
};

/** The output as numbers, all NaNs the same: which payload comes out is not promised. */
std::vector<uint64_t> unified(const PrimitiveOutput& out, Kind kind) {
  struct Width {
    size_t bytes;
    uint64_t infinity;
  };
  constexpr Width kWidths[] = {
      {1, UINT64_MAX}, {8, 0x7ff0000000000000}, {4, 0x7f800000}, {2, 0x7c00}, {2, 0x7f80}};  // by Kind
  const auto [width, infinity] = kWidths[static_cast<size_t>(kind)];
  const uint64_t without_sign = (uint64_t{1} << (8 * width - 1)) - 1;
  std::vector<uint64_t> numbers(sizeof out.bytes / width);
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::memcpy(&numbers[i], out.bytes + i * width, width);
    if ((numbers[i] & without_sign) > infinity) numbers[i] = infinity + 1;
  }
  return numbers;
}

PrimitiveOutput run(const PrimitiveCase& primitive, const PrimitiveInput& in) {
  PrimitiveOutput out;
  std::memset(out.bytes, 0xa5, sizeof out.bytes);
  primitive.run(in, out);
  return out;
}

struct Parameter {
  const PrimitiveTable* table;
  size_t index;
};
std::ostream& operator<<(std::ostream& stream, const Parameter& parameter) {
  return stream << parameter.table->isa << ": " << parameter.table->cases[parameter.index].name;
}

std::vector<Parameter> every_primitive() {
  std::vector<Parameter> all;
  for (const PrimitiveTable* table : {kAvx512Primitives, kAvx2VnniPrimitives, kAvx2Primitives,
                                      kNeonDotprodPrimitives, kNeonPrimitives, kWasmPrimitives}) {
    // The instruction of avx2_vnni is emulated.
    if (table == nullptr || !use_isa(table == kAvx2VnniPrimitives ? "avx2" : table->isa)) continue;
    for (size_t i = 0; i < table->n_cases; ++i) all.push_back({table, i});
  }
  use_isa(available_isas().front());
  return all;
}

std::string name_of(const testing::TestParamInfo<Parameter>& info) {
  std::string name = info.param.table->isa;
  bool gap = true;
  for (const char* c = info.param.table->cases[info.param.index].name; *c != '\0'; ++c) {
    const auto character = static_cast<unsigned char>(*c);
    if (*c == '-') name += "_minus";
    if (std::isalnum(character)) name += std::string(gap ? "_" : "") + *c;
    gap = !std::isalnum(character);
  }
  return name;
}

class Primitive : public testing::TestWithParam<Parameter> {};

TEST_P(Primitive, EqualsTheScalarOne) {
  const auto [table, index] = GetParam();
  const PrimitiveCase &actual = table->cases[index], &expected = kScalarPrimitives->cases[index];
  ASSERT_STREQ(actual.name, expected.name);
  Inputs inputs;
  for (int number = 0; number < 700; ++number) {
    const PrimitiveInput in = inputs.make(number);
    const auto is = unified(run(actual, in), actual.kind),
               should_be = unified(run(expected, in), actual.kind);
    for (size_t i = 0; i < is.size(); ++i) {
      ASSERT_EQ(is[i], should_be[i]) << "number " << i << " of input " << number << ", a " << in.a << ", b "
                                     << in.b << ", scale " << in.scale;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Primitive);  // there may be the scalar set alone
INSTANTIATE_TEST_SUITE_P(Primitives, Primitive, testing::ValuesIn(every_primitive()), name_of);

/** A primitive whose result is all zeros, or what was there before, would be equal too. */
TEST(Primitives, AllWriteSomething) {
  for (size_t i = 0; i < kScalarPrimitives->n_cases; ++i) {
    const PrimitiveCase& primitive = kScalarPrimitives->cases[i];
    Inputs inputs;
    bool differs = false;
    const auto first = unified(run(primitive, inputs.make(0)), primitive.kind);
    for (int number = 1; number < 30; ++number) {
      differs |= unified(run(primitive, inputs.make(number)), primitive.kind) != first;
    }
    EXPECT_TRUE(differs) << primitive.name;
  }
}

}  // namespace
}  // namespace gguf::test
