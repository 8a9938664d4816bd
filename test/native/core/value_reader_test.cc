#include "core/value_reader.h"

#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

class ValueReader : public testing::TestWithParam<FileFormat> {
 protected:
  GgufWriter w{GetParam()};
  Header header;

  void parse_it() {
    auto outcome = parse(w);
    ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
    header = std::move(outcome.result.value());
  }

  /** What is wrong with the value of the first key, in bytes that hold it and nothing else, before an
   * unreadable page. */
  std::string failure(const std::vector<uint8_t>& bytes) {
    const KeyValue& entry = header.keys[0];
    const GuardedBytes guarded(bytes.data() + entry.begin, entry.end - entry.begin);
    Reader reader;
    const Status status = read_value(entry, header, guarded.data(), entry.begin, guarded.size(), reader);
    if (!status) return "";
    return std::string(error_code_name(status->code)) + " at " + std::to_string(status->offset) + ": " +
           status->detail;
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ValueReader, testing::ValuesIn(kFileFormats), format_name);

TEST_P(ValueReader, StopsWhenTold) {
  w.header(0, 1).array_key("a", ValueType::kArray, 2).array(ValueType::kString, 2).string("x").string("y");
  w.array(ValueType::kBool, 1).u8(0);
  parse_it();
  for (int calls = 0; calls < 9; calls++) {
    Reader reader;
    reader.calls_left = calls;
    EXPECT_EQ(read_value(header.keys[0], header, w.bytes().data(), 0, w.offset(), reader), std::nullopt);
    EXPECT_EQ(reader.calls_left, -1);
  }
}

TEST_P(ValueReader, BytesThatAreNotThere) {
  w.header(0, 1).key("s", ValueType::kString).string("text");
  parse_it();
  const KeyValue& entry = header.keys[0];
  Reader reader;
  const auto code = [&](uint64_t base, uint64_t n_bytes) {
    return read_value(entry, header, w.bytes().data(), base, n_bytes, reader)->code;
  };
  EXPECT_EQ(code(0, entry.end - 1), ErrorCode::kTruncated);
  EXPECT_EQ(code(0, 0), ErrorCode::kTruncated);
  EXPECT_EQ(code(entry.begin + 1, entry.end), ErrorCode::kTruncated);
  EXPECT_EQ(code(entry.end + 1, UINT64_MAX), ErrorCode::kTruncated);
  EXPECT_EQ(reader.n_bytes, 0u);
}

TEST_P(ValueReader, BytesThatHaveChanged) {
  w.header(0, 1).array_key("a", ValueType::kString, 2).string("one").string("two");
  parse_it();
  const KeyValue& entry = header.keys[0];
  GgufWriter longer(GetParam());
  longer.zeros(entry.begin).string("one").length(4).raw("two");
  EXPECT_NE(failure(longer.bytes())
                .find("ERR_GGUF_INVALID at " + std::to_string(entry.end - 3 - w.length_bytes()) +
                      ": key 'a': string 1 (4 bytes)"),
            std::string::npos)
      << failure(longer.bytes());
  GgufWriter shorter(GetParam());
  shorter.zeros(entry.begin).string("one").length(2).raw("two");
  EXPECT_NE(failure(shorter.bytes()).find("has changed"), std::string::npos) << failure(shorter.bytes());
}

TEST_P(ValueReader, EveryByteChanged) {
  w.header(0, 1).array_key("a", ValueType::kArray, 3).array(ValueType::kString, 2).string("x").string("y");
  w.array(ValueType::kArray, 1).array(ValueType::kUint16, 1).u16(9).array(ValueType::kBool, 2).u8(0).u8(1);
  parse_it();
  std::vector<uint8_t> bytes = w.bytes();
  for (uint64_t at = header.keys[0].begin; at < header.keys[0].end; at++) {
    for (int change = 0; change < 256; change++) {
      bytes[at] = static_cast<uint8_t>(change);
      failure(bytes);
    }
    bytes[at] = w.bytes()[at];
  }
}

}  // namespace
}  // namespace gguf::test
