// Files that must be accepted, and what the header then says.
#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

class ParseGood : public testing::TestWithParam<FileFormat> {
 protected:
  GgufWriter w{GetParam()};
  uint64_t length_bytes() const { return w.length_bytes(); }
};

INSTANTIATE_TEST_SUITE_P(Formats, ParseGood, testing::ValuesIn(kFileFormats), format_name);

TEST_P(ParseGood, NothingButTheHeader) {
  w.header(0, 0);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  const Header& header = outcome.result.value();
  EXPECT_EQ(header.version, GetParam().version);
  EXPECT_EQ(header.byte_order, GetParam().order);
  EXPECT_EQ(header.alignment, 32u);
  EXPECT_EQ(header.data_offset, 32u);
  EXPECT_EQ(header.file_size, w.offset());
  EXPECT_TRUE(header.keys.empty());
  EXPECT_TRUE(header.tensors.empty());
  EXPECT_EQ(header.find_key("x"), nullptr);
  EXPECT_EQ(header.find_tensor("x"), nullptr);
}

TEST_P(ParseGood, EveryValueType) {
  w.header(0, 13);
  struct Expected {
    std::string key;
    ValueType type;
    uint64_t begin, end;
  };
  std::vector<Expected> expected;
  for (uint32_t number = 0; number <= 12; number++) {
    const ValueType type = static_cast<ValueType>(number);
    const std::string name = value_type_name(type);
    w.key(name, type);
    if (type == ValueType::kArray) w.array(ValueType::kUint16, 3);
    const uint64_t begin = w.offset();
    switch (type) {
      case ValueType::kString:
        w.string("text");
        break;
      case ValueType::kArray:
        w.u16(1).u16(2).u16(3);
        break;
      default:
        w.zeros(fixed_size(type));
        break;
    }
    expected.push_back({name, type, begin, w.offset()});
  }
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  const Header& header = outcome.result.value();
  ASSERT_EQ(header.keys.size(), expected.size());
  for (size_t i = 0; i < expected.size(); i++) {
    const KeyValue& entry = header.keys[i];
    const bool array = entry.type == ValueType::kArray;
    EXPECT_EQ(entry.key, expected[i].key);
    EXPECT_EQ(entry.type, expected[i].type);
    EXPECT_EQ(entry.element_type, array ? ValueType::kUint16 : entry.type);
    EXPECT_EQ(entry.length, array ? 3u : 1u);
    EXPECT_EQ(entry.begin, expected[i].begin);
    EXPECT_EQ(entry.end, expected[i].end);
    EXPECT_EQ(header.find_key(entry.key), &entry);
  }
}

TEST_P(ParseGood, EveryArrayElementType) {
  w.header(0, 13);
  for (uint32_t number = 0; number <= 12; number++) {
    const ValueType type = static_cast<ValueType>(number);
    w.array_key(value_type_name(type), type, 2);
    switch (type) {
      case ValueType::kString:
        w.string("").string("text");
        break;
      case ValueType::kArray:
        w.array(ValueType::kUint8, 1).u8(7).array(ValueType::kString, 1).string("x");
        break;
      case ValueType::kBool:
        w.u8(1).u8(0);
        break;
      default:
        w.zeros(2 * fixed_size(type));
        break;
    }
  }
  EXPECT_GOOD(w);
}

TEST_P(ParseGood, EmptyArraysOfEveryType) {
  w.header(0, 13);
  for (uint32_t number = 0; number <= 12; number++) {
    const ValueType type = static_cast<ValueType>(number);
    w.array_key(value_type_name(type), type, 0);
  }
  EXPECT_GOOD(w);
}

TEST_P(ParseGood, ArraysInArraysUpToTheLimit) {
  w.header(0, 1).array_key("deep", ValueType::kArray, 1);
  for (int depth = 2; depth < 64; depth++) w.array(ValueType::kArray, 1);
  w.array(ValueType::kUint8, 2).u8(1).u8(2);
  EXPECT_GOOD(w);
}

TEST_P(ParseGood, TensorsInFileOrder) {
  w.header(3, 0);
  const uint64_t entry = w.offset();
  w.tensor("b", {256, 3}, kQ4_K, 0).tensor("a", {8}, kF32, 448).tensor("c", {32, 2, 1, 2}, kQ4_0, 480);
  w.pad();
  const uint64_t data = w.offset();
  w.zeros(480 + 4 * 18);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  const Header& header = outcome.result.value();
  EXPECT_EQ(header.data_offset, data);
  ASSERT_EQ(header.tensors.size(), 3u);
  const TensorInfo& first = header.tensors[0];
  EXPECT_EQ(first.name, "b");
  EXPECT_EQ(first.type, kQ4_K);
  EXPECT_EQ(first.n_dims, 2u);
  EXPECT_EQ(first.shape[0], 256u);
  EXPECT_EQ(first.shape[1], 3u);
  EXPECT_EQ(first.shape[2], 1u);
  EXPECT_EQ(first.shape[3], 1u);
  EXPECT_EQ(first.n_elements, 768u);
  EXPECT_EQ(first.n_bytes, 3 * 144u);
  EXPECT_EQ(first.offset, data);
  EXPECT_EQ(first.entry_offset, entry);
  EXPECT_EQ(header.tensors[1].name, "a");
  EXPECT_EQ(header.tensors[2].offset, data + 480);
  EXPECT_EQ(header.tensors[2].n_bytes, 72u);
  EXPECT_EQ(header.find_tensor("a"), &header.tensors[1]);
  EXPECT_EQ(header.find_tensor("d"), nullptr);
}

TEST_P(ParseGood, OutOfOrderAndGappedData) {
  w.header(3, 0)
      .tensor("a", {4}, kF32, 96)
      .tensor("b", {8}, kF32, 0)
      .tensor("c", {1}, kF32, 64)
      .pad()
      .zeros(112);
  EXPECT_GOOD(w);
}

TEST_P(ParseGood, EmptyTensorsShareNoBytes) {
  w.header(4, 0).tensor("a", {8}, kF32, 0).tensor("b", {0}, kF32, 0).tensor("c", {256, 0, 5}, kQ4_K, 0);
  w.tensor("end", {0, 7}, kF32, 32).pad().zeros(32);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  EXPECT_EQ(outcome.result.value().tensors[1].n_elements, 0u);
  EXPECT_EQ(outcome.result.value().tensors[1].n_bytes, 0u);
  EXPECT_EQ(outcome.result.value().tensors[1].shape[0], 0u);
  EXPECT_EQ(outcome.result.value().tensors[2].n_elements, 0u);
}

TEST_P(ParseGood, NoDimsIsOneElement) {
  w.header(1, 0).tensor("a", {}, kF32, 0).pad().zeros(4);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  EXPECT_EQ(outcome.result.value().tensors[0].n_elements, 1u);
  EXPECT_EQ(outcome.result.value().tensors[0].n_bytes, 4u);
}

TEST_P(ParseGood, UnknownTypesAreListed) {
  // A row of 7 would be no whole block of anything; the second lies where the first may well be.
  w.header(3, 0).tensor("removed", {7, 5}, kRemovedType, 0).tensor("new", {9}, kUnknownType, 0);
  w.tensor("last", {1}, UINT32_MAX, 32).pad().zeros(32);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  const TensorInfo& tensor = outcome.result.value().tensors[0];
  EXPECT_EQ(tensor.type, kRemovedType);
  EXPECT_EQ(tensor.n_bytes, TensorInfo::kUnknownSize);
  EXPECT_EQ(tensor.n_elements, 35u);
  EXPECT_EQ(tensor.offset, outcome.result.value().data_offset);
  EXPECT_EQ(outcome.result.value().tensors[2].type, UINT32_MAX);
}

TEST_P(ParseGood, AlignmentMayComeLastAndBeLarge) {
  w.header(1, 2)
      .key("a", ValueType::kUint8)
      .u8(1)
      .alignment(1024)
      .tensor("t", {1}, kF32, 1024)
      .pad(1024)
      .zeros(1028);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  EXPECT_EQ(outcome.result.value().alignment, 1024u);
  EXPECT_EQ(outcome.result.value().data_offset, 1024u);
  EXPECT_EQ(outcome.result.value().tensors[0].offset, 2048u);
}

TEST_P(ParseGood, AlignmentOfOne) {
  w.header(1, 1).alignment(1).tensor("t", {1}, kF32, 3);
  const uint64_t data = w.offset();
  w.zeros(7);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  EXPECT_EQ(outcome.result.value().data_offset, data);
}

TEST_P(ParseGood, OddNames) {
  const std::string long_name(100000, 'n');
  const std::string longest_key(65535, 'k');
  w.header(3, 5);
  w.key("__proto__", ValueType::kUint8).u8(1).key("constructor", ValueType::kUint8).u8(1);
  w.key(std::string_view("nul\0nul", 7), ValueType::kUint8)
      .u8(1)
      .key("\xFF\xFE not UTF-8", ValueType::kUint8)
      .u8(1);
  w.key(longest_key, ValueType::kUint8).u8(1);
  w.tensor(long_name, {1}, kF32, 0)
      .tensor("", {1}, kF32, 32)
      .tensor("__proto__", {1}, kF32, 64)
      .pad()
      .zeros(68);
  const auto outcome = parse(w);
  ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
  const Header& header = outcome.result.value();
  EXPECT_NE(header.find_key("__proto__"), nullptr);
  EXPECT_NE(header.find_key(std::string_view("nul\0nul", 7)), nullptr);
  EXPECT_EQ(header.find_key("nul"), nullptr);
  EXPECT_NE(header.find_key(longest_key), nullptr);
  EXPECT_NE(header.find_tensor(long_name), nullptr);
  EXPECT_NE(header.find_tensor(""), nullptr);
}

TEST_P(ParseGood, StringsThatAreNotText) {
  w.header(0, 2).key("s", ValueType::kString).string(std::string_view("\xC3\0\xFF", 3));
  w.array_key("a", ValueType::kString, 2).string("\x80").string(std::string_view("\0", 1));
  EXPECT_GOOD(w);
}

TEST_P(ParseGood, SurvivesItsBytes) {
  w.header(1, 1).key("key", ValueType::kUint8).u8(1).tensor("tensor", {1}, kF32, 0).pad().zeros(4);
  Header header;
  {
    auto outcome = parse(w);  // whose bytes are gone when it returns
    ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
    header = std::move(outcome.result.value());
  }
  EXPECT_EQ(header.keys[0].key, "key");
  EXPECT_EQ(header.tensors[0].name, "tensor");
  EXPECT_NE(header.find_key("key"), nullptr);
  EXPECT_NE(header.find_tensor("tensor"), nullptr);
}

}  // namespace
}  // namespace gguf::test
