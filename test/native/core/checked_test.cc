#include "core/checked.h"

#include <gtest/gtest.h>

namespace gguf::test {
namespace {

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
