#include "core/value_reader.h"

#include <cstring>

#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

/** Writes down what it is told: "uint32 7", "[uint16 1 2]", "[array [string a b] []]" ... */
class Recorder : public ValueVisitor {
 public:
  std::string text;
  int calls_left = 1000;

  bool number(ValueType type, const void* value) override {
    say(value_type_name(type));
    say(number_text(type, static_cast<const uint8_t*>(value)));
    return go_on();
  }
  bool boolean(bool value) override {
    say(value ? "true" : "false");
    return go_on();
  }
  bool string(std::string_view bytes) override {
    say("'" + std::string(bytes) + "'");
    return go_on();
  }
  bool begin_array(ValueType element_type, uint64_t length) override {
    say("[" + std::to_string(length) + " " + value_type_name(element_type));
    return go_on();
  }
  bool numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order) override {
    const size_t size = fixed_size(type);
    std::vector<uint8_t> host(count * size);
    copy_numbers(type, bytes, count, order, host.data());
    for (uint64_t i = 0; i < count; i++) say(number_text(type, host.data() + i * size));
    return go_on();
  }
  bool booleans(const uint8_t* bytes, uint64_t count) override {
    for (uint64_t i = 0; i < count; i++) say(bytes[i] ? "true" : "false");
    return go_on();
  }
  bool end_array() override {
    say("]");
    return go_on();
  }

 private:
  void say(const std::string& word) { text += (text.empty() ? "" : " ") + word; }
  bool go_on() { return calls_left-- > 0; }

  template <class T>
  static std::string as_text(const uint8_t* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return std::to_string(value);
  }
  static std::string number_text(ValueType type, const uint8_t* bytes) {
    constexpr std::string (*kTexts[])(const uint8_t*) = {
        as_text<uint8_t>,  as_text<int8_t>,  as_text<uint16_t>, as_text<int16_t>, as_text<uint32_t>,
        as_text<int32_t>,  as_text<float>,   nullptr,           nullptr,          nullptr,
        as_text<uint64_t>, as_text<int64_t>, as_text<double>};  // by ValueType
    return kTexts[static_cast<size_t>(type)](bytes);
  }
};

class ValueReader : public testing::TestWithParam<FileFormat> {
 protected:
  GgufWriter w{GetParam()};
  Header header;

  void parse_it() {
    auto outcome = parse(w);
    ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
    header = std::move(outcome.result.value());
  }

  /** The value of the first key, read from bytes that hold it and nothing else, before an unreadable page. */
  std::string value(const std::vector<uint8_t>& bytes) {
    const KeyValue& entry = header.keys[0];
    const GuardedBytes guarded(bytes.data() + entry.begin, entry.end - entry.begin);
    Recorder recorder;
    const Status status = read_value(entry, header, guarded.data(), entry.begin, guarded.size(), recorder);
    if (!status) return recorder.text;
    return std::string(error_code_name(status->code)) + " at " + std::to_string(status->offset) + ": " +
           status->detail;
  }
  /** Makes `w` a file with one key, which is to be written. */
  GgufWriter& one_key() { return w = GgufWriter(GetParam()).header(0, 1); }
  /** Of the key in `w`. */
  void expect_value(const GgufWriter&, const std::string& text) {
    parse_it();
    EXPECT_EQ(value(w.bytes()), text);
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, ValueReader, testing::ValuesIn(kFileFormats), format_name);

TEST_P(ValueReader, Numbers) {
  const struct {
    ValueType type;
    uint64_t bits;
    const char* text;
  } cases[] = {
      {ValueType::kUint8, 0xFF, "uint8 255"},
      {ValueType::kInt8, 0xFF, "int8 -1"},
      {ValueType::kUint16, 0xFFFE, "uint16 65534"},
      {ValueType::kInt16, 0x8000, "int16 -32768"},
      {ValueType::kUint32, 0xFEDCBA98, "uint32 4275878552"},
      {ValueType::kInt32, 0xFFFFFFFE, "int32 -2"},
      {ValueType::kFloat32, 0x3FC00000, "float32 1.500000"},
      {ValueType::kUint64, 0xFEDCBA9876543210, "uint64 18364758544493064720"},
      {ValueType::kInt64, 0x8000000000000001, "int64 -9223372036854775807"},
      {ValueType::kFloat64, 0xC004000000000000, "float64 -2.500000"},
  };
  for (const auto& one : cases) {
    expect_value(one_key().key("n", one.type).number(one.bits, fixed_size(one.type)), one.text);
  }
}

TEST_P(ValueReader, BoolsAndStrings) {
  const auto key = [&](ValueType type) -> GgufWriter& { return one_key().key("v", type); };
  expect_value(key(ValueType::kBool).u8(1), "true");
  expect_value(key(ValueType::kString).string("héllo"), "'héllo'");
}

TEST_P(ValueReader, Arrays) {
  const auto array = [&](ValueType type, uint64_t n) -> GgufWriter& {
    return one_key().array_key("a", type, n);
  };
  expect_value(array(ValueType::kInt16, 3).u16(1).u16(0xFFFF).u16(0x0102), "[3 int16 1 -1 258 ]");
  expect_value(array(ValueType::kUint8, 2).u8(3).u8(4), "[2 uint8 3 4 ]");
  expect_value(array(ValueType::kUint32, 2).u32(0x01020304).u32(4), "[2 uint32 16909060 4 ]");
  expect_value(array(ValueType::kUint64, 1).u64(uint64_t{1} << 60), "[1 uint64 1152921504606846976 ]");
  expect_value(array(ValueType::kBool, 3).u8(1).u8(0).u8(1), "[3 bool true false true ]");
  expect_value(array(ValueType::kString, 3).string("x").string("").string("yz"), "[3 string 'x' '' 'yz' ]");
  for (const ValueType type : {ValueType::kUint8, ValueType::kBool, ValueType::kString, ValueType::kArray}) {
    expect_value(array(type, 0), std::string("[0 ") + value_type_name(type) + " ]");
  }
  array(ValueType::kArray, 3).array(ValueType::kString, 2).string("x").string("y");
  w.array(ValueType::kArray, 2).array(ValueType::kUint8, 1).u8(9).array(ValueType::kArray, 0);
  expect_value(w.array(ValueType::kBool, 1).u8(0),
               "[3 array [2 string 'x' 'y' ] [2 array [1 uint8 9 ] [0 array ] ] [1 bool false ] ]");
}

TEST_P(ValueReader, StopsWhenTold) {
  w.header(0, 1).array_key("a", ValueType::kArray, 2).array(ValueType::kString, 2).string("x").string("y");
  w.array(ValueType::kBool, 1).u8(0);
  parse_it();
  for (int calls = 0; calls < 9; calls++) {
    Recorder recorder;
    recorder.calls_left = calls;
    EXPECT_EQ(read_value(header.keys[0], header, w.bytes().data(), 0, w.offset(), recorder), std::nullopt);
    EXPECT_EQ(recorder.calls_left, -1);
  }
}

TEST_P(ValueReader, BytesThatAreNotThere) {
  w.header(0, 1).key("s", ValueType::kString).string("text");
  parse_it();
  const KeyValue& entry = header.keys[0];
  Recorder recorder;
  const auto code = [&](uint64_t base, uint64_t n_bytes) {
    return read_value(entry, header, w.bytes().data(), base, n_bytes, recorder)->code;
  };
  EXPECT_EQ(code(0, entry.end - 1), ErrorCode::kTruncated);
  EXPECT_EQ(code(0, 0), ErrorCode::kTruncated);
  EXPECT_EQ(code(entry.begin + 1, entry.end), ErrorCode::kTruncated);
  EXPECT_EQ(code(entry.end + 1, UINT64_MAX), ErrorCode::kTruncated);
  EXPECT_EQ(recorder.text, "");
}

TEST_P(ValueReader, BytesThatHaveChanged) {
  w.header(0, 1).array_key("a", ValueType::kString, 2).string("one").string("two");
  parse_it();
  const KeyValue& entry = header.keys[0];
  GgufWriter longer(GetParam());
  longer.zeros(entry.begin).string("one").length(4).raw("two");
  EXPECT_NE(value(longer.bytes())
                .find("ERR_GGUF_INVALID at " + std::to_string(entry.end - 3 - w.length_bytes()) +
                      ": key 'a': string 1 (4 bytes)"),
            std::string::npos)
      << value(longer.bytes());
  GgufWriter shorter(GetParam());
  shorter.zeros(entry.begin).string("one").length(2).raw("two");
  EXPECT_NE(value(shorter.bytes()).find("has changed"), std::string::npos) << value(shorter.bytes());
}

TEST_P(ValueReader, EveryByteChanged) {
  w.header(0, 1).array_key("a", ValueType::kArray, 3).array(ValueType::kString, 2).string("x").string("y");
  w.array(ValueType::kArray, 1).array(ValueType::kUint16, 1).u16(9).array(ValueType::kBool, 2).u8(0).u8(1);
  parse_it();
  std::vector<uint8_t> bytes = w.bytes();
  for (uint64_t at = header.keys[0].begin; at < header.keys[0].end; at++) {
    for (int change = 0; change < 256; change++) {
      bytes[at] = static_cast<uint8_t>(change);
      value(bytes);
    }
    bytes[at] = w.bytes()[at];
  }
}

}  // namespace
}  // namespace gguf::test
