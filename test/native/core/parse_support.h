// What the tests of the parser share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/parse.h"
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

/** A file that is accepted. */
#define EXPECT_GOOD(writer, ...)                                     \
  do {                                                               \
    const auto good_outcome = parse(writer, ##__VA_ARGS__);          \
    EXPECT_TRUE(good_outcome.result.ok()) << describe(good_outcome); \
  } while (false)

}  // namespace gguf::test
