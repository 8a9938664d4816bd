// What the tests of the parser share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/parse.h"
#include "core/value_reader.h"
#include "test/native/core/gguf_writer.h"
#include "test/native/core/guarded_bytes.h"

namespace gguf::test {

// The tensor types that these tests use. All others are unknown here, whatever the library knows.
constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint32_t kQ4_K = 12;
constexpr uint32_t kUnknownType = 1000000;

inline TypeSize type_size(uint32_t type) {
  switch (type) {
    case kF32:
      return {1, 4};
    case kQ4_0:
      return {32, 18};
    case kQ4_K:
      return {256, 144};
    default:
      return {};
  }
}

/** Parses with the last byte against a page that cannot be read. */
inline ParseOutcome parse(const std::vector<uint8_t>& bytes, ParseOptions options = {}) {
  const GuardedBytes guarded(bytes.data(), bytes.size());
  return parse_header(guarded.data(), guarded.size(), guarded.size(), type_size, options);
}

inline ParseOutcome parse(const GgufWriter& writer, ParseOptions options = {}) {
  return parse(writer.bytes(), options);
}

/** "ERR_GGUF_INVALID at 24: ..." or "ok". */
inline std::string describe(const ParseOutcome& outcome) {
  if (outcome.result.ok()) return "ok";
  const Error& error = outcome.result.error();
  return std::string(error_code_name(error.code)) + " at " + std::to_string(error.offset) + ": " +
         error.detail;
}

constexpr ParseOptions kPartial = {true};

/** Every layout of numbers that a file can have; big-endian ones exist only from version 3 on. */
inline const FileFormat kFileFormats[] = {
    {1, ByteOrder::kLittle}, {2, ByteOrder::kLittle}, {3, ByteOrder::kLittle}, {3, ByteOrder::kBig}};

inline std::string format_name(const testing::TestParamInfo<FileFormat>& info) {
  return "v" + std::to_string(info.param.version) + (info.param.order == ByteOrder::kBig ? "BigEndian" : "");
}

/** Looks at all that it is told, as long as it wants. test/file/metadata.test.ts has the values. */
class Reader : public ValueVisitor {
 public:
  int calls_left = 1000;
  uint64_t n_bytes = 0;

  bool number(ValueType type, const void*) override { return take(fixed_size(type)); }
  bool boolean(bool) override { return take(1); }
  bool string(std::string_view bytes) override { return take(std::string(bytes).size()); }
  bool begin_array(ValueType, uint64_t) override { return take(0); }
  bool numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order) override {
    std::vector<uint8_t> host(count * fixed_size(type));
    copy_numbers(type, bytes, count, order, host.data());
    return take(host.size());
  }
  bool booleans(const uint8_t* bytes, uint64_t count) override {
    return take(std::vector<uint8_t>(bytes, bytes + count).size());
  }
  bool end_array() override { return take(0); }

 private:
  bool take(uint64_t n) {
    n_bytes += n;
    return calls_left-- > 0;
  }
};

/** A file that is accepted. */
#define EXPECT_GOOD(writer, ...)                                     \
  do {                                                               \
    const auto good_outcome = parse(writer, ##__VA_ARGS__);          \
    EXPECT_TRUE(good_outcome.result.ok()) << describe(good_outcome); \
  } while (false)

}  // namespace gguf::test
