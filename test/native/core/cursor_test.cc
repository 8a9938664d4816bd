#include "core/cursor.h"

#include <gtest/gtest.h>

#include "core/checked.h"

namespace gguf::test {
namespace {

constexpr uint8_t kBytes[] = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(Cursor, ReadsBothByteOrders) {
  Cursor in(kBytes, 100, 8, 200);
  uint32_t little, big;
  ASSERT_TRUE(in.read(little));
  in.set_format(3, ByteOrder::kBig);
  ASSERT_TRUE(in.read(big));
  EXPECT_EQ(little, 0x04030201u);
  EXPECT_EQ(big, 0x05060708u);
  EXPECT_EQ(in.offset(), 108u);
  EXPECT_EQ(in.remaining(), 92u);
}

TEST(Cursor, LengthsDependOnTheVersion) {
  uint64_t value;
  Cursor wide(kBytes, 0, 8, 8);
  ASSERT_TRUE(wide.read_length(value));
  EXPECT_EQ(value, 0x0807060504030201u);
  Cursor narrow(kBytes, 0, 8, 8);
  narrow.set_format(1, ByteOrder::kLittle);
  ASSERT_TRUE(narrow.read_length(value));
  EXPECT_EQ(value, 0x04030201u);
}

TEST(Cursor, TellsTheEndOfTheFileFromTheEndOfWhatIsLoaded) {
  Cursor in(kBytes, 0, 8, 10);
  EXPECT_FALSE(in.skip(9));
  EXPECT_EQ(in.shortfall(), Shortfall::kNotLoaded);
  EXPECT_FALSE(in.skip(11));
  EXPECT_EQ(in.shortfall(), Shortfall::kPastEnd);
  EXPECT_EQ(in.offset(), 0u);
  EXPECT_TRUE(in.skip(8));
  EXPECT_FALSE(in.skip(UINT64_MAX));
  EXPECT_EQ(in.shortfall(), Shortfall::kPastEnd);
  EXPECT_EQ(in.offset(), 8u);
}

TEST(Cursor, AStringThatDoesNotFitLeavesItInPlace) {
  const uint8_t bytes[] = {9, 0, 0, 0, 0, 0, 0, 0, 'x'};
  Cursor in(bytes, 0, sizeof bytes, sizeof bytes);
  const uint8_t* text;
  uint64_t n_bytes;
  EXPECT_FALSE(in.take_string(text, n_bytes));
  EXPECT_EQ(in.offset(), 0u);
  uint64_t skipped;
  EXPECT_FALSE(in.skip_strings(1, skipped));
  EXPECT_EQ(skipped, 0u);
  EXPECT_EQ(in.offset(), 0u);
  EXPECT_EQ(in.shortfall(), Shortfall::kPastEnd);
}

TEST(Cursor, OfNothing) {
  Cursor in(nullptr, 0, 0, 0);
  uint8_t value;
  EXPECT_FALSE(in.read(value));
  EXPECT_TRUE(in.skip(0));
  uint64_t skipped;
  EXPECT_TRUE(in.skip_strings(0, skipped));
  EXPECT_FALSE(in.skip_strings(1, skipped));
}

TEST(Checked, Multiply) {
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  uint64_t product = 7;
  EXPECT_TRUE(multiply_below(kLimit, 0, UINT64_MAX, product));
  EXPECT_EQ(product, 0u);
  EXPECT_TRUE(multiply_below(kLimit, kLimit - 1, 1, product));
  EXPECT_EQ(product, kLimit - 1);
  EXPECT_FALSE(multiply_below(kLimit, kLimit, 1, product));
  EXPECT_FALSE(multiply_below(kLimit, uint64_t{1} << 32, uint64_t{1} << 31, product));
  EXPECT_FALSE(multiply_below(kLimit, UINT64_MAX, UINT64_MAX, product));
  EXPECT_EQ(product, kLimit - 1);
}

TEST(Checked, AddAndRoundUp) {
  uint64_t result = 0;
  EXPECT_TRUE(add(UINT64_MAX - 1, 1, result));
  EXPECT_EQ(result, UINT64_MAX);
  EXPECT_FALSE(add(UINT64_MAX, 1, result));
  EXPECT_TRUE(round_up(33, 32, result));
  EXPECT_EQ(result, 64u);
  EXPECT_TRUE(round_up(64, 32, result));
  EXPECT_EQ(result, 64u);
  EXPECT_TRUE(round_up(5, 1, result));
  EXPECT_EQ(result, 5u);
  EXPECT_FALSE(round_up(UINT64_MAX - 30, 32, result));
}

}  // namespace
}  // namespace gguf::test
