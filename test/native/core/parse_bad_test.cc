// One test for each rule that a file can break: the error's code, the offset of the field at fault, and what
// the detail must mention.
#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 62;

class ParseBad : public testing::TestWithParam<FileFormat> {
 protected:
  GgufWriter w{GetParam()};
  /** Whether counts and lengths have four bytes, and can therefore hold no large numbers. */
  bool narrow() const { return GetParam().version == 1; }
  /** The largest count or length that can be written. */
  uint64_t largest() const { return narrow() ? UINT32_MAX : UINT64_MAX; }

  void expect(ErrorCode code, uint64_t offset, const std::string& mentioned, ParseOptions options = {}) {
    const auto outcome = parse(w, options);
    ASSERT_FALSE(outcome.result.ok());
    const Error& error = outcome.result.error();
    EXPECT_STREQ(error_code_name(error.code), error_code_name(code)) << describe(outcome);
    EXPECT_EQ(error.offset, offset) << describe(outcome);
    EXPECT_NE(error.detail.find(mentioned), std::string::npos) << describe(outcome);
    EXPECT_FALSE(outcome.need_more);
  }
  void expect_invalid(uint64_t offset, const std::string& mentioned, ParseOptions options = {}) {
    expect(ErrorCode::kInvalid, offset, mentioned, options);
  }
  void expect_truncated(uint64_t offset, const std::string& mentioned, ParseOptions options = {}) {
    expect(ErrorCode::kTruncated, offset, mentioned, options);
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ParseBad, testing::ValuesIn(kFileFormats), format_name);

// ---- magic, version, counts

TEST_P(ParseBad, EmptyFile) {
  expect_truncated(0, "empty");
}

TEST_P(ParseBad, WrongMagic) {
  w.raw("GGUf").u32(GetParam().version).zeros(64);
  expect(ErrorCode::kMagic, 0, "'GGUf'");
}

TEST_P(ParseBad, WrongMagicInAShortFile) {
  w.raw("GX");
  expect(ErrorCode::kMagic, 0, "'GX'");
}

TEST_P(ParseBad, StartOfTheMagic) {
  w.raw("GGU");
  expect_truncated(0, "magic");
}

TEST_P(ParseBad, OtherFilesAreNamed) {
  w.raw("version https://git-lfs.github.com/spec/v1\n");
  expect(ErrorCode::kMagic, 0, "Git LFS");
}

TEST_P(ParseBad, Versions) {
  for (const uint32_t version : {0u, 4u, 77u, 0xFFFFu, 0x00010000u, 0x04000000u, 0xFFFFFFFFu, 0xFFFF0000u}) {
    w = GgufWriter();
    w.raw("GGUF").u32(version).zeros(64);
    expect(ErrorCode::kVersion, 4, "version is");
  }
}

TEST_P(ParseBad, TensorCountPastTheEnd) {
  w.header(largest(), 0).zeros(64);
  expect_truncated(8, "tensors do not fit");
}

TEST_P(ParseBad, TensorCountJustTooLarge) {
  w.header(3, 0).zeros(3 * (w.length_bytes() + 16) - 1);
  expect_truncated(8, "3 tensors do not fit");
}

TEST_P(ParseBad, KeyCountPastTheEnd) {
  w.header(0, largest()).zeros(64);
  expect_truncated(8 + w.length_bytes(), "keys do not fit");
}

TEST_P(ParseBad, KeysLeaveNoRoomForTensors) {
  w.header(2, 1).key("a", ValueType::kString).string(std::string(100, 'x'));
  expect_truncated(w.offset(), "2 tensors do not fit");
}

// ---- keys

TEST_P(ParseBad, EmptyKey) {
  w.header(0, 1);
  const uint64_t at = w.offset();
  w.key("", ValueType::kUint8).u8(1).zeros(64);
  expect_invalid(at, "has 0 bytes");
}

TEST_P(ParseBad, LongKey) {
  w.header(0, 1);
  const uint64_t at = w.offset();
  w.key(std::string(65536, 'k'), ValueType::kUint8).u8(1);
  expect_invalid(at, "65536 bytes");
}

TEST_P(ParseBad, KeyPastTheEnd) {
  w.header(0, 1);
  const uint64_t at = w.offset();
  w.length(largest()).raw("abcdefgh");
  expect_truncated(at, std::to_string(largest()) + " bytes");
}

TEST_P(ParseBad, KeyOneByteTooLong) {
  w.header(0, 1);
  const uint64_t at = w.offset();
  w.length(9).raw("abcdefgh");
  expect_truncated(at, "9 bytes");
}

TEST_P(ParseBad, DuplicateKey) {
  w.header(0, 3).key("same", ValueType::kUint8).u8(1).key("other", ValueType::kUint8).u8(1);
  const uint64_t at = w.offset();
  w.key("same", ValueType::kUint32).u32(1);
  expect_invalid(at, "key 'same': there are two keys of this name, number 0 and number 2");
}

TEST_P(ParseBad, UnknownValueType) {
  for (const uint32_t number : {13u, 255u, UINT32_MAX}) {
    w = GgufWriter(GetParam());
    w.header(0, 1).string("bad\nkey");
    const uint64_t at = w.offset();
    w.u32(number).zeros(64);
    expect_invalid(at, "key 'bad\\nkey': the value type is " + std::to_string(number));
  }
}

TEST_P(ParseBad, UnknownArrayElementType) {
  w.header(0, 1).key("a", ValueType::kArray);
  const uint64_t at = w.offset();
  w.u32(13).length(1).zeros(64);
  expect_invalid(at, "element type is 13");
}

TEST_P(ParseBad, UnknownArrayElementTypeOfAnEmptyInnerArray) {
  w.header(0, 1).array_key("a", ValueType::kArray, 1);
  const uint64_t at = w.offset();
  w.u32(99).length(0).zeros(64);
  expect_invalid(at, "element type is 99");
}

TEST_P(ParseBad, Bool) {
  w.header(0, 1).key("flag", ValueType::kBool);
  const uint64_t at = w.offset();
  w.u8(2).zeros(64);
  expect_invalid(at, "key 'flag': a bool is 2");
}

TEST_P(ParseBad, BoolInAnArray) {
  w.header(0, 1).array_key("flags", ValueType::kBool, 1000);
  const uint64_t at = w.offset() + 777;
  w.zeros(777).u8(255).zeros(222);
  expect_invalid(at, "a bool is 255");
}

TEST_P(ParseBad, BoolInAnArrayInAnArray) {
  w.header(0, 1)
      .array_key("flags", ValueType::kArray, 2)
      .array(ValueType::kBool, 1)
      .u8(1)
      .array(ValueType::kBool, 2);
  w.u8(0);
  const uint64_t at = w.offset();
  w.u8(3);
  expect_invalid(at, "a bool is 3");
}

TEST_P(ParseBad, NumberPastTheEnd) {
  w.header(0, 1).key("n", ValueType::kUint64);
  const uint64_t at = w.offset();
  w.zeros(7);
  expect_truncated(at, "uint64");
}

TEST_P(ParseBad, StringPastTheEnd) {
  for (const uint64_t n_bytes : {uint64_t{5}, largest(), largest() - 7, largest() - 8}) {
    w = GgufWriter(GetParam());
    w.header(0, 1).key("s", ValueType::kString);
    const uint64_t at = w.offset();
    w.length(n_bytes).raw("text");
    expect_truncated(at, std::to_string(n_bytes) + " bytes");
  }
}

TEST_P(ParseBad, StringInAnArrayPastTheEnd) {
  for (const uint64_t n_bytes : {uint64_t{5}, largest(), largest() - 7, largest() - 8, largest() - 70}) {
    w = GgufWriter(GetParam());
    w.header(0, 1).array_key("s", ValueType::kString, 3).string("one").string("two");
    const uint64_t at = w.offset();
    w.length(n_bytes).raw("text");
    expect_truncated(at, "string 2 (" + std::to_string(n_bytes) + " bytes)");
  }
}

TEST_P(ParseBad, LengthOfAStringInAnArrayPastTheEnd) {
  w.header(0, 1).array_key("s", ValueType::kString, 2).string("a long one, for the count to fit");
  const uint64_t at = w.offset();
  w.zeros(w.length_bytes() - 1);
  expect_truncated(at, "the length of string 1");
}

TEST_P(ParseBad, ArrayCountPastTheEnd) {
  for (uint32_t number = 0; number <= 12; number++) {
    const ValueType type = static_cast<ValueType>(number);
    const uint64_t smallest = type == ValueType::kString  ? w.length_bytes()
                              : type == ValueType::kArray ? 4 + w.length_bytes()
                                                          : fixed_size(type);
    // One too many; all that fit in the field; and counts whose bytes wrap to a small number.
    for (const uint64_t count : {64 / smallest + 1, largest(), largest() / smallest + 1, largest() / 2 + 1}) {
      if (count <= 64 / smallest || count > largest()) continue;
      w = GgufWriter(GetParam());
      w.header(0, 1).key("a", ValueType::kArray).type(type);
      const uint64_t at = w.offset();
      w.length(count).zeros(64);
      expect_truncated(at, "array of " + std::to_string(count) + " " + value_type_name(type));
    }
  }
}

TEST_P(ParseBad, InnerArrayCountPastTheEnd) {
  w.header(0, 1).array_key("a", ValueType::kArray, 2).array(ValueType::kUint8, 0).type(ValueType::kUint32);
  const uint64_t at = w.offset();
  w.length(largest()).zeros(64);
  expect_truncated(at, "uint32 does not fit");
}

TEST_P(ParseBad, ArraysTooDeep) {
  w.header(0, 1).array_key("deep", ValueType::kArray, 1);
  for (int depth = 2; depth <= 64; depth++) w.array(ValueType::kArray, 1);
  const uint64_t at = w.offset();
  w.array(ValueType::kUint8, 1).u8(1);
  expect_invalid(at, "more than 64 deep");
}

TEST_P(ParseBad, NestingBomb) {
  w.header(0, 1).array_key("deep", ValueType::kArray, 1);
  const uint64_t at = w.offset() + 63 * (4 + w.length_bytes());
  for (int depth = 0; depth < 100000; depth++) w.array(ValueType::kArray, 1);
  expect_invalid(at, "deep");
}

TEST_P(ParseBad, NoMetadataWhereKeysWerePromised) {
  w.header(0, 1).zeros(w.length_bytes() + 6);
  expect_invalid(8 + 2 * w.length_bytes(), "has 0 bytes");
}

// ---- alignment

TEST_P(ParseBad, AlignmentOfAnotherType) {
  w.header(0, 1).string("general.alignment");
  const uint64_t at = w.offset();
  w.type(ValueType::kUint64).u64(32).zeros(64);
  expect_invalid(at, "uint64");
}

TEST_P(ParseBad, AlignmentThatIsAnArray) {
  w.header(0, 1).string("general.alignment");
  const uint64_t at = w.offset();
  w.type(ValueType::kArray).array(ValueType::kUint32, 1).u32(32).zeros(64);
  expect_invalid(at, "array");
}

TEST_P(ParseBad, AlignmentNoPowerOfTwo) {
  for (const uint32_t alignment : {0u, 3u, 33u, 0x80000001u, UINT32_MAX}) {
    w = GgufWriter(GetParam());
    w.header(0, 1).key("general.alignment", ValueType::kUint32);
    const uint64_t at = w.offset();
    w.u32(alignment).zeros(64);
    expect_invalid(at, "alignment is " + std::to_string(alignment));
  }
}

TEST_P(ParseBad, AlignmentThatPutsTheDataPastTheEnd) {
  for (const bool tensors : {false, true}) {
    w = GgufWriter(GetParam());
    w.header(tensors ? 1 : 0, 1).key("general.alignment", ValueType::kUint32);
    const uint64_t at = w.offset();
    w.u32(0x80000000);
    if (tensors) w.tensor("t", {1}, kF32, 0);
    w.zeros(64);
    expect_invalid(at, "general.alignment");
    EXPECT_GOOD(w, kPartial);
  }
}

TEST_P(ParseBad, NoPaddingBeforeTheData) {
  w.header(1, 0).tensor("t", {0}, kF32, 0);
  ASSERT_NE(w.offset() % 32, 0u);
  expect_truncated(w.offset(), "would start at byte");
  EXPECT_GOOD(w, kPartial);
}

// ---- tensors

TEST_P(ParseBad, TensorNamePastTheEnd) {
  w.header(1, 0);
  const uint64_t at = w.offset();
  w.length(largest()).zeros(64);
  expect_truncated(at, "tensor 0");
}

TEST_P(ParseBad, TensorNameTooLong) {
  w.header(1, 0);
  const uint64_t at = w.offset();
  w.tensor(std::string((1 << 20) + 1, 'n'), {1}, kF32, 0).pad().zeros(4);
  expect_invalid(at, "1048577 bytes");
}

TEST_P(ParseBad, DuplicateTensor) {
  w.header(3, 0).tensor("same", {1}, kF32, 0).tensor("other", {1}, kF32, 32);
  const uint64_t at = w.offset();
  w.tensor("same", {1}, kF32, 64).pad().zeros(68);
  expect_invalid(at, "tensor 'same': there are two");
}

TEST_P(ParseBad, FiveDimensions) {
  w.header(1, 0).string("t");
  const uint64_t at = w.offset();
  w.u32(5);
  for (int i = 0; i < 5; i++) w.length(1);
  w.u32(kF32).u64(0).pad().zeros(4);
  expect_invalid(at, "5 dimensions");
}

TEST_P(ParseBad, ManyDimensions) {
  w.header(1, 0).string("t");
  const uint64_t at = w.offset();
  w.u32(UINT32_MAX).zeros(64);
  expect_invalid(at, "4294967295 dimensions");
}

TEST_P(ParseBad, LargeDimension) {
  if (narrow()) GTEST_SKIP() << "version 1 has dimensions of 32 bits";
  for (const uint64_t dim : {uint64_t{1} << 63, UINT64_MAX}) {
    w = GgufWriter(GetParam());
    w.header(1, 0).string("t").u32(2).length(1);
    const uint64_t at = w.offset();
    w.length(dim).u32(kF32).u64(0).pad().zeros(4);
    expect_invalid(at, "dimension 1 is " + std::to_string(dim));
    expect_invalid(at, "dimension 1", kPartial);
  }
}

TEST_P(ParseBad, ProductOfDimensions) {
  w.header(1, 0).string("t").u32(4).length(UINT32_MAX).length(UINT32_MAX);
  // (2^32 - 1)^2 is 2^63 or more.
  const uint64_t at = w.offset() - w.length_bytes();
  w.length(1).length(1).u32(kF32).u64(0).pad().zeros(4);
  expect_invalid(at, "multiply to 2^63 or more", kPartial);
}

TEST_P(ParseBad, ProductOfDimensionsThatWrapsToZero) {
  if (narrow()) GTEST_SKIP() << "version 1 has dimensions of 32 bits";
  w.header(1, 0).string("t").u32(2).length(uint64_t{1} << 32);
  const uint64_t at = w.offset();
  w.length(uint64_t{1} << 32).u32(kF32).u64(0).pad().zeros(4);
  expect_invalid(at, "multiply to 2^63 or more");
}

TEST_P(ParseBad, ProductOfDimensionsBesideAZero) {
  w.header(1, 0).string("t").u32(3).length(0).length(UINT32_MAX);
  const uint64_t at = w.offset();
  w.length(UINT32_MAX).u32(kF32).u64(0).pad().zeros(4);
  expect_invalid(at, "multiply to 2^63 or more");
}

TEST_P(ParseBad, ByteSize) {
  w.header(1, 0).string("t").u32(2);
  const uint64_t at = w.offset();
  w.length(uint64_t{1} << 31).length((uint64_t{1} << 31) + 1).u32(kF32).u64(0).pad().zeros(4);  // times 4
                                                                                                // bytes
  expect_invalid(at, "2^63 bytes or more", kPartial);
}

TEST_P(ParseBad, RowOfPartOfABlock) {
  w.header(1, 0).string("t").u32(2);
  const uint64_t at = w.offset();
  w.length(255).length(256).u32(kQ4_K).u64(0).pad().zeros(100000);
  expect_invalid(at, "rows have 255 elements, not a multiple of the 256");
}

TEST_P(ParseBad, BlocksWithoutDimensions) {
  w.header(1, 0).string("t").u32(0);
  const uint64_t at = w.offset();
  w.u32(kQ4_0).u64(0).pad().zeros(100);
  expect_invalid(at, "rows have 1 elements");
}

TEST_P(ParseBad, OffsetNotAligned) {
  w.header(1, 0).tensor("t", {1}, kF32, 16);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(64);
  expect_invalid(at, "16, not a multiple of the alignment 32");
}

TEST_P(ParseBad, OffsetNotAlignedAsTheFileSays) {
  w.header(1, 1).alignment(64).tensor("t", {1}, kUnknownType, 32);
  const uint64_t at = w.offset() - 8;
  w.pad(64).zeros(64);
  expect_invalid(at, "not a multiple of the alignment 64");
}

TEST_P(ParseBad, DataPastTheEnd) {
  w.header(2, 0).tensor("a", {1}, kF32, 0).tensor("b", {2, 4}, kF32, 32);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(32 + 31);
  expect_truncated(at, "tensor 'b': its data, 32 bytes at offset 32");
  EXPECT_GOOD(w, kPartial);
  w.zeros(1);
  EXPECT_GOOD(w);
}

TEST_P(ParseBad, OffsetPastTheEnd) {
  for (const uint32_t type : {kF32, kUnknownType}) {
    for (const uint64_t dim : {0, 1}) {
      w = GgufWriter(GetParam());
      w.header(1, 0).tensor("t", {dim}, type, 64);
      const uint64_t at = w.offset() - 8;
      w.pad().zeros(63);
      expect_truncated(at, "offset 64");
      EXPECT_GOOD(w, kPartial);
    }
  }
}

TEST_P(ParseBad, OffsetThatWraps) {
  for (const uint64_t offset :
       {UINT64_MAX - 31, UINT64_MAX - 63, UINT64_MAX - 95, UINT64_MAX - 127, kHuge * 2}) {
    w = GgufWriter(GetParam());
    w.header(1, 0).tensor("t", {32}, kF32, offset);
    const uint64_t at = w.offset() - 8;
    w.pad().zeros(512);
    expect_truncated(at, "offset " + std::to_string(offset));
  }
}

TEST_P(ParseBad, OffsetThatWrapsIsNoMissingData) {
  w.header(1, 0).tensor("t", {1}, kF32, UINT64_MAX - 31);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(4);
  expect_truncated(at, "runs past the end", kPartial);
}

TEST_P(ParseBad, OverlapInOrder) {
  w.header(2, 0).tensor("a", {9}, kF32, 0).tensor("b", {8}, kF32, 32);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(64);
  expect_invalid(at, "tensor 'b': its data");
  expect_invalid(at, "overlaps that of tensor 'a'", kPartial);
}

TEST_P(ParseBad, OverlapOutOfOrder) {
  w.header(4, 0).tensor("late", {8}, kF32, 96).tensor("long", {20}, kF32, 0).tensor("none", {0}, kF32, 32);
  w.tensor("inside", {1}, kF32, 64);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(128);
  expect_invalid(at, "tensor 'inside': its data");
}

TEST_P(ParseBad, OverlapIsReportedAtTheSecondInTheDirectory) {
  w.header(2, 0).tensor("second in the file", {8}, kF32, 32).tensor("first in the file", {16}, kF32, 0);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(128);
  expect_invalid(at, "tensor 'first in the file': its data");
}

TEST_P(ParseBad, OverlapOfOneByte) {
  w.header(2, 0).tensor("a", {33}, kI8, 0).tensor("b", {8}, kI8, 32);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(64);
  expect_invalid(at, "overlaps that of tensor 'a'");
}

TEST_P(ParseBad, OverlapOfOneByteOutOfOrder) {
  w.header(3, 0).tensor("late", {8}, kI8, 64).tensor("a", {33}, kI8, 0).tensor("b", {8}, kI8, 32);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(96);
  expect_invalid(at, "overlaps that of tensor 'a'");
}

TEST_P(ParseBad, SameOffset) {
  w.header(2, 0).tensor("a", {8}, kF32, 0).tensor("b", {8}, kF32, 0);
  const uint64_t at = w.offset() - 8;
  w.pad().zeros(64);
  expect_invalid(at, "overlaps");
}

/** Blocks of 34 bytes for 128 weights, which PrismML's fork wrote as type 42. */
TEST_P(ParseBad, TensorsOfTheForkAreNamed) {
  for (const bool overlaps : {false, true}) {  // else the last one runs past the end
    w = GgufWriter(GetParam());
    w.header(overlaps ? 3 : 1, 0);
    w.tensor("a", {1280}, kQ2_0, 0);
    const uint64_t at = w.offset() - 8;
    if (overlaps) w.tensor("b", {1280}, kQ2_0, 352).tensor("c", {64}, kF32, 704);
    w.pad().zeros(overlaps ? 704 + 256 : 340);
    expect(ErrorCode::kUnsupportedType, at, "tensor 'a': the tensors of type 42 have blocks of 34 bytes");
  }
}

TEST_P(ParseBad, CutTensorsOfType42AreTruncated) {
  for (const uint64_t n_bytes : {uint64_t{339}, uint64_t{353}, uint64_t{359}}) {
    w = GgufWriter(GetParam());
    w.header(1, 0).tensor("a", {1280}, kQ2_0, 0);
    const uint64_t at = w.offset() - 8;
    w.pad().zeros(n_bytes);
    expect_truncated(at, "runs past the end");
  }
}

}  // namespace
}  // namespace gguf::test
