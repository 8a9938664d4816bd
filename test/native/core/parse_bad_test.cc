// Every rule that a file can break: the error's code, the offset of the field at fault, which the writer
// marks, and what the detail must mention.
#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

/** For expect(): without its data the file is good. */
constexpr bool kGoodInPart = true;

class ParseBad : public testing::TestWithParam<FileFormat> {
 protected:
  GgufWriter file() const { return GgufWriter(GetParam()); }
  GgufWriter file(uint64_t n_tensors, uint64_t n_keys) const { return file().header(n_tensors, n_keys); }
  uint64_t length_bytes() const { return file().length_bytes(); }
  /** Whether counts and lengths have four bytes, and can therefore hold no large numbers. */
  bool narrow() const { return GetParam().version == 1; }
  /** The largest count or length that can be written. */
  uint64_t largest() const { return narrow() ? UINT32_MAX : UINT64_MAX; }

  static void expect(ErrorCode code, const GgufWriter& w, const std::string& mentioned,
                     bool good_in_part = false) {
    SCOPED_TRACE(mentioned);
    for (const ParseOptions options : {ParseOptions{}, kPartial}) {
      const auto outcome = parse(w, options);
      EXPECT_EQ(outcome.result.ok(), options.partial && good_in_part) << describe(outcome);
      if (outcome.result.ok()) continue;
      const Error& error = outcome.result.error();
      EXPECT_STREQ(error_code_name(error.code), error_code_name(code)) << describe(outcome);
      EXPECT_EQ(error.offset, w.marked()) << describe(outcome);
      EXPECT_NE(error.detail.find(mentioned), std::string::npos) << describe(outcome);
      EXPECT_FALSE(outcome.need_more);
    }
  }
  static void expect_invalid(const GgufWriter& w, const std::string& mentioned, bool good_in_part = false) {
    expect(ErrorCode::kInvalid, w, mentioned, good_in_part);
  }
  static void expect_truncated(const GgufWriter& w, const std::string& mentioned, bool good_in_part = false) {
    expect(ErrorCode::kTruncated, w, mentioned, good_in_part);
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ParseBad, testing::ValuesIn(kFileFormats), format_name);

TEST_P(ParseBad, MagicAndVersion) {
  expect_truncated(file(), "empty");
  expect_truncated(file().raw("GGU"), "magic");
  expect(ErrorCode::kMagic, file().raw("GGUf").u32(GetParam().version).zeros(64), "'GGUf'");
  expect(ErrorCode::kMagic, file().raw("GX"), "'GX'");
  expect(ErrorCode::kMagic, file().raw("version https://git-lfs.github.com/spec/v1\n"), "Git LFS");
  for (const uint32_t version : {0u, 4u, 77u, 0xFFFFu, 0x00010000u, 0x04000000u, 0xFFFFFFFFu, 0xFFFF0000u}) {
    expect(ErrorCode::kVersion, GgufWriter().raw("GGUF").mark().u32(version).zeros(64), "version is");
  }
}

TEST_P(ParseBad, Counts) {
  expect_truncated(file().start().mark().length(largest()).length(0).zeros(64), "tensors do not fit");
  expect_truncated(file().start().mark().length(3).length(0).zeros(3 * (length_bytes() + 16) - 1),
                   "3 tensors do not fit");
  expect_truncated(file().start().length(0).mark().length(largest()).zeros(64), "keys do not fit");
  expect_truncated(file(2, 1).key("a", ValueType::kString).string(std::string(100, 'x')).mark(),
                   "2 tensors do not fit");
}

TEST_P(ParseBad, Keys) {
  expect_invalid(file(0, 1).mark().key("", ValueType::kUint8).u8(1).zeros(64), "has 0 bytes");
  expect_invalid(file(0, 1).mark().zeros(length_bytes() + 6), "has 0 bytes");
  expect_invalid(file(0, 1).mark().key(std::string(65536, 'k'), ValueType::kUint8).u8(1), "65536 bytes");
  expect_truncated(file(0, 1).mark().length(largest()).raw("abcdefgh"), std::to_string(largest()) + " bytes");
  expect_truncated(file(0, 1).mark().length(9).raw("abcdefgh"), "9 bytes");
  GgufWriter two = file(0, 3).key("same", ValueType::kUint8).u8(1).key("other", ValueType::kUint8).u8(1);
  expect_invalid(two.mark().key("same", ValueType::kUint32).u32(1),
                 "key 'same': there are two keys of this name, number 0 and number 2");
}

TEST_P(ParseBad, ValueTypes) {
  for (const uint32_t number : {13u, 255u, UINT32_MAX}) {
    expect_invalid(file(0, 1).string("bad\nkey").mark().u32(number).zeros(64),
                   "key 'bad\\nkey': the value type is " + std::to_string(number));
  }
  expect_invalid(file(0, 1).key("a", ValueType::kArray).mark().u32(13).length(1).zeros(64),
                 "element type is 13");
  expect_invalid(file(0, 1).array_key("a", ValueType::kArray, 1).mark().u32(99).length(0).zeros(64),
                 "element type is 99");
}

TEST_P(ParseBad, Bools) {
  expect_invalid(file(0, 1).key("flag", ValueType::kBool).mark().u8(2).zeros(64), "key 'flag': a bool is 2");
  expect_invalid(file(0, 1).array_key("flags", ValueType::kBool, 1000).zeros(777).mark().u8(255).zeros(222),
                 "a bool is 255");
  GgufWriter nested = file(0, 1).array_key("flags", ValueType::kArray, 2).array(ValueType::kBool, 1).u8(1);
  expect_invalid(nested.array(ValueType::kBool, 2).u8(0).mark().u8(3), "a bool is 3");
}

TEST_P(ParseBad, NumbersAndStringsPastTheEnd) {
  expect_truncated(file(0, 1).key("n", ValueType::kUint64).mark().zeros(7), "uint64");
  for (const uint64_t n_bytes : {uint64_t{5}, largest(), largest() - 7, largest() - 8, largest() - 70}) {
    const std::string text = std::to_string(n_bytes) + " bytes";
    expect_truncated(file(0, 1).key("s", ValueType::kString).mark().length(n_bytes).raw("text"), text);
    GgufWriter three = file(0, 1).array_key("s", ValueType::kString, 3).string("one").string("two");
    expect_truncated(three.mark().length(n_bytes).raw("text"), "string 2 (" + text + ")");
  }
  GgufWriter two = file(0, 1).array_key("s", ValueType::kString, 2);
  expect_truncated(two.string("a long one, for the count to fit").mark().zeros(length_bytes() - 1),
                   "the length of string 1");
}

TEST_P(ParseBad, ArrayCountsPastTheEnd) {
  for (uint32_t number = 0; number <= 12; number++) {
    const ValueType type = static_cast<ValueType>(number);
    const uint64_t smallest = type == ValueType::kString  ? length_bytes()
                              : type == ValueType::kArray ? 4 + length_bytes()
                                                          : fixed_size(type);
    // One too many; all that fit in the field; and counts whose bytes wrap to a small number.
    for (const uint64_t count : {64 / smallest + 1, largest(), largest() / smallest + 1, largest() / 2 + 1}) {
      if (count <= 64 / smallest || count > largest()) continue;
      expect_truncated(file(0, 1).key("a", ValueType::kArray).type(type).mark().length(count).zeros(64),
                       "array of " + std::to_string(count) + " " + value_type_name(type));
    }
  }
  GgufWriter inner = file(0, 1).array_key("a", ValueType::kArray, 2).array(ValueType::kUint8, 0);
  expect_truncated(inner.type(ValueType::kUint32).mark().length(largest()).zeros(64), "uint32 does not fit");
}

TEST_P(ParseBad, ArraysTooDeep) {
  for (const int depth : {64, 100000}) {
    GgufWriter w = file(0, 1).array_key("deep", ValueType::kArray, 1);
    for (int i = 2; i <= 64; i++) w.array(ValueType::kArray, 1);
    w.mark();
    for (int i = 64; i < depth; i++) w.array(ValueType::kArray, 1);
    expect_invalid(w.array(ValueType::kUint8, 1).u8(1), "more than 64 deep");
  }
}

TEST_P(ParseBad, Alignment) {
  const auto before_type = [&] { return file(0, 1).string("general.alignment").mark(); };
  expect_invalid(before_type().type(ValueType::kUint64).u64(32).zeros(64), "uint64");
  expect_invalid(before_type().type(ValueType::kArray).array(ValueType::kUint32, 1).u32(32).zeros(64),
                 "array");
  const auto before_value = [&](uint64_t n_tensors) {
    return file(n_tensors, 1).key("general.alignment", ValueType::kUint32).mark();
  };
  for (const uint32_t alignment : {0u, 3u, 33u, 0x80000001u, UINT32_MAX}) {
    expect_invalid(before_value(0).u32(alignment).zeros(64), "alignment is " + std::to_string(alignment));
  }
  // The data would start past the end.
  expect_invalid(before_value(0).u32(0x80000000).zeros(64), "general.alignment", kGoodInPart);
  expect_invalid(before_value(1).u32(0x80000000).tensor("t", {1}, kF32, 0).zeros(64), "general.alignment",
                 kGoodInPart);
  const GgufWriter unpadded = file(1, 0).tensor("t", {0}, kF32, 0).mark();
  ASSERT_NE(unpadded.offset() % 32, 0u);
  expect_truncated(unpadded, "would start at byte", kGoodInPart);
}

TEST_P(ParseBad, TensorNames) {
  expect_truncated(file(1, 0).mark().length(largest()).zeros(64), "tensor 0");
  const std::string long_name((1 << 20) + 1, 'n');
  expect_invalid(file(1, 0).mark().tensor(long_name, {1}, kF32, 0).pad().zeros(4), "1048577 bytes");
  GgufWriter two = file(3, 0).tensor("same", {1}, kF32, 0).tensor("other", {1}, kF32, 32);
  expect_invalid(two.mark().tensor("same", {1}, kF32, 64).pad().zeros(68), "tensor 'same': there are two");
}

TEST_P(ParseBad, Dimensions) {
  GgufWriter five = file(1, 0).string("t").mark().u32(5);
  for (int i = 0; i < 5; i++) five.length(1);
  expect_invalid(five.u32(kF32).u64(0).pad().zeros(4), "5 dimensions");
  expect_invalid(file(1, 0).string("t").mark().u32(UINT32_MAX).zeros(64), "4294967295 dimensions");
  const auto dimensions = [&](uint32_t n) { return file(1, 0).string("t").u32(n); };
  const auto floats = [](GgufWriter& w) { return w.u32(kF32).u64(0).pad().zeros(4); };
  // (2^32 - 1)^2 is 2^63 or more.
  expect_invalid(floats(dimensions(4).length(UINT32_MAX).mark().length(UINT32_MAX).length(1).length(1)),
                 "multiply to 2^63 or more");
  expect_invalid(floats(dimensions(3).length(0).length(UINT32_MAX).mark().length(UINT32_MAX)),
                 "multiply to 2^63 or more");
  expect_invalid(floats(dimensions(2).mark().length(uint64_t{1} << 31).length((uint64_t{1} << 31) + 1)),
                 "2^63 bytes or more");
  if (narrow()) return;  // 32 bits hold no larger ones
  for (const uint64_t dim : {uint64_t{1} << 63, UINT64_MAX}) {
    expect_invalid(floats(dimensions(2).length(1).mark().length(dim)),
                   "dimension 1 is " + std::to_string(dim));
  }
  // The product wraps to zero.
  expect_invalid(floats(dimensions(2).length(uint64_t{1} << 32).mark().length(uint64_t{1} << 32)),
                 "multiply to 2^63 or more");
}

TEST_P(ParseBad, PartsOfBlocks) {
  const auto dimensions = [&](uint32_t n) { return file(1, 0).string("t").u32(n).mark(); };
  expect_invalid(dimensions(2).length(255).length(256).u32(kQ4_K).u64(0).pad().zeros(100000),
                 "rows have 255 elements, not a multiple of the 256");
  expect_invalid(dimensions(0).u32(kQ4_0).u64(0).pad().zeros(100), "rows have 1 elements");
}

/** `tensor`, with its offset marked. */
GgufWriter at_offset(GgufWriter w, std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                     uint64_t offset) {
  return w.tensor_shape(name, shape, type).mark().u64(offset);
}

TEST_P(ParseBad, Offsets) {
  expect_invalid(at_offset(file(1, 0), "t", {1}, kF32, 16).pad().zeros(64),
                 "16, not a multiple of the alignment 32");
  expect_invalid(at_offset(file(1, 1).alignment(64), "t", {1}, kUnknownType, 32).pad(64).zeros(64),
                 "not a multiple of the alignment 64");
  for (const uint32_t type : {kF32, kUnknownType}) {
    for (const uint64_t dim : {0, 1}) {
      expect_truncated(at_offset(file(1, 0), "t", {dim}, type, 64).pad().zeros(63), "offset 64", kGoodInPart);
    }
  }
  GgufWriter short_of_one = at_offset(file(2, 0).tensor("a", {1}, kF32, 0), "b", {2, 4}, kF32, 32).pad();
  expect_truncated(short_of_one.zeros(32 + 31), "tensor 'b': its data, 32 bytes at offset 32", kGoodInPart);
  EXPECT_GOOD(short_of_one.zeros(1));
  expect_truncated(at_offset(file(1, 0), "t", {32}, kF32, uint64_t{1} << 63).pad().zeros(512),
                   "offset 9223372036854775808", kGoodInPart);
  // Those that wrap are no missing data.
  for (const uint64_t offset : {UINT64_MAX - 31, UINT64_MAX - 63, UINT64_MAX - 95, UINT64_MAX - 127}) {
    expect_truncated(at_offset(file(1, 0), "t", {32}, kF32, offset).pad().zeros(512),
                     "offset " + std::to_string(offset));
  }
  expect_truncated(at_offset(file(1, 0), "t", {1}, kF32, UINT64_MAX - 31).pad().zeros(4),
                   "runs past the end");
}

TEST_P(ParseBad, Overlaps) {
  const auto first = [&](uint64_t n_elements, uint32_t type) {
    return file(2, 0).tensor("a", {n_elements}, type, 0);
  };
  const char* const at_second = "tensor 'b': its data";
  expect_invalid(at_offset(first(9, kF32), "b", {8}, kF32, 32).pad().zeros(64), at_second);
  expect_invalid(at_offset(first(8, kF32), "b", {8}, kF32, 0).pad().zeros(64), at_second);
  expect_invalid(at_offset(first(33, kI8), "b", {8}, kI8, 32).pad().zeros(64), "overlaps that of tensor 'a'");
  const GgufWriter late = file(3, 0).tensor("late", {8}, kI8, 64).tensor("a", {33}, kI8, 0);
  expect_invalid(at_offset(late, "b", {8}, kI8, 32).pad().zeros(96), "overlaps that of tensor 'a'");
  GgufWriter many = file(4, 0).tensor("late", {8}, kF32, 96).tensor("long", {20}, kF32, 0);
  many.tensor("none", {0}, kF32, 32);
  expect_invalid(at_offset(many, "inside", {1}, kF32, 64).pad().zeros(128), "tensor 'inside': its data");
  // Reported at the second in the directory.
  const GgufWriter second = file(2, 0).tensor("second in the file", {8}, kF32, 32);
  expect_invalid(at_offset(second, "first in the file", {16}, kF32, 0).pad().zeros(128),
                 "tensor 'first in the file': its data");
}

/** Blocks of 34 bytes for 128 weights, which PrismML's fork wrote as type 42. */
TEST_P(ParseBad, TensorsOfTheForkAreNamed) {
  const std::string named = "tensor 'a': the tensors of type 42 have blocks of 34 bytes";
  expect(ErrorCode::kUnsupportedType, at_offset(file(1, 0), "a", {1280}, kQ2_0, 0).pad().zeros(340), named,
         kGoodInPart);
  GgufWriter overlapping = at_offset(file(3, 0), "a", {1280}, kQ2_0, 0).tensor("b", {1280}, kQ2_0, 352);
  overlapping.tensor("c", {64}, kF32, 704).pad().zeros(704 + 256);
  expect(ErrorCode::kUnsupportedType, overlapping, named);
}

TEST_P(ParseBad, CutTensorsOfType42AreTruncated) {
  for (const uint64_t n_bytes : {uint64_t{339}, uint64_t{353}, uint64_t{359}}) {
    expect_truncated(at_offset(file(1, 0), "a", {1280}, kQ2_0, 0).pad().zeros(n_bytes), "runs past the end",
                     kGoodInPart);
  }
}

}  // namespace
}  // namespace gguf::test
