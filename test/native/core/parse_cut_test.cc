// Files of which a part is missing, or not loaded yet, or changed.
#include <algorithm>

#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

class ParseCut : public testing::TestWithParam<FileFormat> {
 protected:
  GgufWriter w{GetParam()};
  uint64_t directory_end = 0;

  /** A file with some of everything. */
  void SetUp() override {
    w.header(3, 8).alignment(64).key("name", ValueType::kString).string("a model");
    w.array_key("tokens", ValueType::kString, 4).string("one").string("").string("three").string("four");
    w.array_key("scores", ValueType::kFloat32, 5)
        .zeros(20)
        .array_key("flags", ValueType::kBool, 3)
        .u8(1)
        .u8(0)
        .u8(1);
    w.array_key("nested", ValueType::kArray, 3).array(ValueType::kString, 2).string("x").string("y");
    w.array(ValueType::kArray, 1).array(ValueType::kUint16, 2).u16(1).u16(2).array(ValueType::kInt64, 0);
    w.key("flag", ValueType::kBool).u8(1).key("number", ValueType::kFloat64).u64(0);
    w.tensor("a", {256, 2}, kQ4_K, 0).tensor("b", {}, kF32, 320).tensor("c", {3, 1, 2}, kUnknownType, 384);
    directory_end = w.offset();
    w.pad(64).zeros(384);
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ParseCut, testing::ValuesIn(kFileFormats), format_name);

/** A header in words, to compare two. */
std::string summary(const Header& header) {
  std::string text = std::to_string(header.version) + " " + std::to_string(header.alignment) + " " +
                     std::to_string(header.data_offset) + "\n";
  for (const KeyValue& entry : header.keys) {
    text += std::string(entry.key) + " " + value_type_name(entry.type) + " " +
            value_type_name(entry.element_type) + " " + std::to_string(entry.length) + " " +
            std::to_string(entry.begin) + " " + std::to_string(entry.end) + "\n";
  }
  for (const TensorInfo& tensor : header.tensors) {
    text += std::string(tensor.name) + " " + std::to_string(tensor.type) + " " +
            std::to_string(tensor.n_elements) + " " + std::to_string(tensor.n_bytes) + " " +
            std::to_string(tensor.offset) + "\n";
  }
  return text;
}

TEST_P(ParseCut, WholeFile) {
  EXPECT_GOOD(w);
}

TEST(ParseCutMagic, AsksForAllThatIsThereBeforeItSaysThatAFileIsTooShort) {
  const uint8_t bytes[] = {'P', 'K', 3};
  for (uint64_t file_size = 1; file_size <= 3; file_size++) {
    const auto none = parse_header(bytes, 0, file_size, type_size, {});
    EXPECT_TRUE(none.need_more) << describe(none);
    const auto all = parse_header(bytes, file_size, file_size, type_size, {});
    EXPECT_FALSE(all.need_more);
    EXPECT_EQ(all.result.error().code, ErrorCode::kMagic);
  }
  const uint8_t start[] = {'G', 'G', 'U'};
  const auto cut = parse_header(start, 3, 3, type_size, {});
  EXPECT_FALSE(cut.need_more);
  EXPECT_EQ(describe(cut), "ERR_GGUF_TRUNCATED at 0: the magic 'GGUF' runs past the end, at byte 3");
  EXPECT_TRUE(parse_header(start, 2, 3, type_size, {}).need_more);
}

TEST_P(ParseCut, CutAtEveryByte) {
  for (size_t n_bytes = 0; n_bytes < w.offset(); n_bytes++) {
    const std::vector<uint8_t> cut(w.bytes().begin(),
                                   w.bytes().begin() + static_cast<std::ptrdiff_t>(n_bytes));
    const auto outcome = parse(cut);
    ASSERT_FALSE(outcome.result.ok()) << n_bytes;
    const Error& error = outcome.result.error();
    // In the padding, it is the alignment that asks for more than there is.
    const bool in_padding = n_bytes >= directory_end && n_bytes < w.offset() - 384;
    EXPECT_EQ(error.code, in_padding ? ErrorCode::kInvalid : ErrorCode::kTruncated)
        << n_bytes << describe(outcome);
    EXPECT_LE(error.offset, n_bytes) << describe(outcome);
    EXPECT_FALSE(outcome.need_more);
    EXPECT_EQ(parse(cut, kPartial).result.ok(), n_bytes >= directory_end) << n_bytes;
  }
}

TEST_P(ParseCut, LoadedByteByByte) {
  const auto whole = parse(w);
  ASSERT_TRUE(whole.result.ok());
  for (size_t n_loaded = 0; n_loaded <= w.offset(); n_loaded++) {
    const GuardedBytes loaded(w.bytes().data(), n_loaded);
    const auto outcome = parse_header(loaded.data(), n_loaded, w.offset(), type_size, {});
    EXPECT_EQ(outcome.result.ok(), n_loaded >= directory_end) << n_loaded;
    EXPECT_EQ(outcome.need_more, n_loaded < directory_end) << n_loaded;
    if (outcome.need_more) {
      EXPECT_GT(outcome.n_needed, n_loaded);
      EXPECT_LE(outcome.n_needed, directory_end);
    }
    if (outcome.result.ok()) {
      EXPECT_EQ(summary(outcome.result.value()), summary(whole.result.value()));
    } else {
      EXPECT_EQ(outcome.result.error().code, ErrorCode::kTruncated) << describe(outcome);
      EXPECT_LE(outcome.result.error().offset, n_loaded);
    }
  }
}

TEST_P(ParseCut, WhatTheFileCannotHoldIsAnErrorAtOnce) {
  // Loaded up to the bad count; the counts are held against the file, not against what is loaded.
  GgufWriter bad(GetParam());
  bad.header(0, 1).key("a", ValueType::kArray).type(ValueType::kUint32);
  const uint64_t at = bad.offset();
  bad.length(1000);
  const auto outcome = parse_header(bad.bytes().data(), bad.offset(), bad.offset() + 3999, type_size, {});
  ASSERT_FALSE(outcome.result.ok());
  EXPECT_FALSE(outcome.need_more);
  EXPECT_EQ(outcome.result.error().code, ErrorCode::kTruncated);
  EXPECT_EQ(outcome.result.error().offset, at);
  EXPECT_TRUE(parse_header(bad.bytes().data(), bad.offset(), bad.offset() + 4000, type_size, {}).need_more);
}

TEST_P(ParseCut, MoreBytesThanTheFileHasAreNotLookedAt) {
  const auto outcome = parse_header(w.bytes().data(), w.offset(), directory_end, type_size, kPartial);
  EXPECT_TRUE(outcome.result.ok()) << describe(outcome);
}

/** Whatever a byte becomes: an answer, and no read past the end (the guard page and the sanitizers see to
 * that). */
TEST_P(ParseCut, EveryByteChanged) {
  GuardedBytes bytes(w.bytes().data(), w.offset());
  for (size_t at = 0; at < directory_end; at++) {
    const uint8_t original = bytes.data()[at];
    for (const int change : {0x00, 0x01, 0x02, 0x08, 0x09, 0x0D, 0x10, 0x7F, 0x80, 0xFF}) {
      bytes.data()[at] = static_cast<uint8_t>(change);
      const auto outcome = parse_header(bytes.data(), bytes.size(), bytes.size(), type_size, {});
      if (!outcome.result.ok()) {
        EXPECT_LE(outcome.result.error().offset, bytes.size()) << describe(outcome);
      }
      EXPECT_FALSE(outcome.need_more);
    }
    bytes.data()[at] = original;
  }
}

}  // namespace
}  // namespace gguf::test
