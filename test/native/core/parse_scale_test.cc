// Large headers, and files that claim to have them.
#include <algorithm>
#include <chrono>

#include "core/limits.h"
#include "test/native/core/allocation_meter.h"
#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

/** Far more than any of these takes, sanitizers and a busy machine included, and far less than quadratic work
 * would. */
constexpr double kManySeconds = 10;

double seconds_to_parse(const GgufWriter& w, Header& header) {
  const auto start = std::chrono::steady_clock::now();
  auto outcome = parse(w);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(outcome.result.ok()) << describe(outcome);
  if (outcome.result.ok()) header = std::move(outcome.result.value());
  return seconds.count();
}

TEST(ParseScale, ManyTensors) {
  constexpr uint32_t kCount = 200000;
  GgufWriter w;
  w.header(kCount, 0);
  // Backwards, so that the check for overlaps has to sort.
  for (uint32_t i = 0; i < kCount; i++)
    w.tensor("tensor." + std::to_string(i), {1}, kF32, 32 * (kCount - 1 - i));
  w.pad().zeros(32 * kCount);
  const size_t before = allocated_bytes();
  Header header;
  EXPECT_LT(seconds_to_parse(w, header), kManySeconds);
  EXPECT_LT(allocated_bytes() - before, 10 * w.offset());
  ASSERT_EQ(header.tensors.size(), kCount);
  EXPECT_EQ(header.find_tensor("tensor.123456"), &header.tensors[123456]);
}

TEST(ParseScale, LongArraysArePassed) {
  constexpr uint32_t kCount = 3 << 20;
  GgufWriter w;
  w.header(0, 2).array_key("tokens", ValueType::kString, kCount).zeros(8 * kCount);
  w.array_key("nested", ValueType::kArray, kCount).zeros(12 * kCount);
  struct Passed {
    uint64_t end = 0, longest = 0;
    bool in_order = true;
  } passed;
  ParseOptions options;
  options.passed_context = &passed;
  options.passed = [](const void* context, uint64_t begin, uint64_t end) {
    Passed& so_far = *static_cast<Passed*>(const_cast<void*>(context));
    so_far.in_order &= begin == so_far.end && end > begin;
    so_far.longest = std::max(so_far.longest, end - begin);
    so_far.end = end;
  };
  const std::vector<uint8_t>& bytes = w.bytes();
  const auto outcome = parse_header(bytes.data(), bytes.size(), bytes.size(), type_size, options);
  ASSERT_TRUE(outcome.result.ok());
  EXPECT_TRUE(passed.in_order);
  EXPECT_LE(passed.longest, 2 * kPassedBytes);
  EXPECT_GE(passed.end + kPassedBytes, bytes.size());
  EXPECT_LE(passed.end, bytes.size());
}

TEST(ParseScale, ManyInnerArrays) {
  constexpr uint32_t kCount = 500000;
  GgufWriter w;
  w.header(0, 1).array_key("arrays", ValueType::kArray, kCount);
  for (uint32_t i = 0; i < kCount; i++) w.array(ValueType::kUint8, 1).u8(1);
  Header header;
  EXPECT_LT(seconds_to_parse(w, header), kManySeconds);
}

// A file can be as large as it likes to say (a sparse one costs nothing): what it claims takes no memory by
// itself.

constexpr uint64_t kTebibyte = uint64_t{1} << 40;

TEST(ParseScale, ClaimedCountsTakeNoMemory) {
  for (const bool keys : {false, true}) {
    GgufWriter w;
    w.header(keys ? 0 : kMaxEntries, keys ? kMaxEntries : 0);
    const size_t before = allocated_bytes();
    const auto outcome = parse_header(w.bytes().data(), w.offset(), kTebibyte, type_size, {});
    EXPECT_TRUE(outcome.need_more) << describe(outcome);
    EXPECT_LT(allocated_bytes() - before, size_t{16} << 20);
  }
}

TEST(ParseScale, TooManyStringsInSeveralArrays) {
  constexpr uint32_t kFirst = 1000;
  GgufWriter w;
  w.header(0, 2).array_key("a", ValueType::kBool, kFirst).zeros(kFirst);
  w.key("b", ValueType::kArray).type(ValueType::kString);
  const uint64_t at = w.offset();
  w.length(kMaxWalkedElements - kFirst + 1);
  const auto outcome = parse_header(w.bytes().data(), w.offset(), kTebibyte, type_size, {});
  ASSERT_FALSE(outcome.need_more);
  ASSERT_FALSE(outcome.result.ok());
  EXPECT_EQ(outcome.result.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(outcome.result.error().offset, at);
}

}  // namespace
}  // namespace gguf::test
