#include "machine/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/pages.h"
#include "machine/settings.h"
#include "test/native/machine/on_threads.h"

namespace gguf::test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr uint8_t kMark = 0x5a;

/** Each test starts and ends with an empty pool. A block that was used before holds what was written to it, a
    fresh one zeros. */
class PagePool : public testing::Test {
 protected:
  void SetUp() override { page_pool::trim(); }
  void TearDown() override { page_pool::trim(); }

  static page_pool::Block take_marked(size_t n_bytes) {
    const page_pool::Block block = page_pool::take(n_bytes);
    std::memset(block.data, kMark, block.n_bytes);
    return block;
  }
  static bool is_marked(const page_pool::Block& block) {
    return block.data[block.n_bytes / 2] == kMark && block.data[block.n_bytes - 1] == kMark;
  }
};

TEST_F(PagePool, BlocksAreWholeHugePages) {
  for (const size_t n_bytes : {size_t{0}, size_t{1}, kMiB, 2 * kMiB, 2 * kMiB + 1, 5 * kMiB}) {
    const page_pool::Block block = page_pool::take(n_bytes);
    EXPECT_GE(block.n_bytes, n_bytes);
    EXPECT_LE(block.n_bytes, std::max(n_bytes, size_t{1}) + kHugePageBytes);
    EXPECT_EQ(block.n_bytes % kHugePageBytes, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % kHugePageBytes, 0u);
    std::memset(block.data, kMark, block.n_bytes);
    page_pool::give_back(block);
  }
}

TEST_F(PagePool, ABlockIsUsedAgain) {
  page_pool::give_back(take_marked(4 * kMiB));
  const page_pool::Block again = page_pool::take(3 * kMiB);
  EXPECT_TRUE(is_marked(again));
  const page_pool::Block other = page_pool::take(3 * kMiB);
  EXPECT_FALSE(is_marked(other));
  page_pool::give_back(again);
  page_pool::give_back(other);
}

TEST_F(PagePool, AZeroedBlockIsZeroWhetherItIsUsedAgainOrNot) {
  const auto is_zero = [](const page_pool::Block& block, size_t n_bytes) {
    return std::all_of(block.data, block.data + n_bytes, [](uint8_t byte) { return byte == 0; });
  };
  constexpr size_t kBytes = 3 * kMiB + 5;
  const page_pool::Block fresh = page_pool::take_zeroed(kBytes);
#ifdef __linux__
  // Left to whoever writes to it first.
  EXPECT_FALSE(pages_are_present(fresh.data + fresh.n_bytes / 2, 1));
#endif
  EXPECT_TRUE(is_zero(fresh, kBytes));
  std::memset(fresh.data, kMark, fresh.n_bytes);
  page_pool::give_back(fresh);
  const page_pool::Block again = page_pool::take_zeroed(kBytes);
  EXPECT_EQ(again.data, fresh.data);
  EXPECT_TRUE(is_zero(again, kBytes));
  page_pool::give_back(again);
}

TEST_F(PagePool, TheSmallestThatFitsIsTaken) {
  const page_pool::Block small = take_marked(4 * kMiB), large = take_marked(6 * kMiB);
  page_pool::give_back(large);
  page_pool::give_back(small);
  const page_pool::Block block = page_pool::take(4 * kMiB);
  EXPECT_EQ(block.data, small.data);
  page_pool::give_back(block);
}

TEST_F(PagePool, ABlockMoreThanTwiceAsLargeIsNot) {
  page_pool::give_back(take_marked(10 * kMiB));
  const page_pool::Block small = page_pool::take(4 * kMiB);
  EXPECT_FALSE(is_marked(small));
  EXPECT_EQ(small.n_bytes, 4 * kMiB);
  const page_pool::Block half = page_pool::take(6 * kMiB);
  EXPECT_TRUE(is_marked(half));
  page_pool::give_back(small);
  page_pool::give_back(half);
}

TEST_F(PagePool, TrimFreesWhatIsKept) {
  const page_pool::Block block = take_marked(4 * kMiB);
  page_pool::give_back(block);
#ifdef __linux__
  EXPECT_TRUE(pages_are_present(block.data, block.n_bytes));
  page_pool::trim();
  EXPECT_FALSE(pages_are_present(block.data, block.n_bytes));
#else
  page_pool::trim();
#endif
  const page_pool::Block fresh = page_pool::take(4 * kMiB);
  EXPECT_FALSE(is_marked(fresh));
  page_pool::give_back(fresh);
}

/** The limit is set below, before it is read for the first time. */
constexpr size_t kLimit = 64 * kMiB;
const bool limit_is_set = [] {
#ifdef _WIN32
  return _putenv_s("GGUF_NATIVE_POOL_MB", "64") == 0;
#else
  return setenv("GGUF_NATIVE_POOL_MB", "64", 1) == 0;
#endif
}();

TEST_F(PagePool, KeepsNoMoreThanTheLimit) {
  ASSERT_TRUE(limit_is_set);
  ASSERT_EQ(page_pool::limit(), kLimit);
  std::vector<page_pool::Block> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(take_marked(kLimit / 4));
  for (int round = 0; round < 2; ++round) {  // what is taken makes room again
    for (const page_pool::Block& block : blocks) page_pool::give_back(block);
    size_t n_kept = 0;
    for (page_pool::Block& block : blocks) {
      block = page_pool::take(kLimit / 4);
      n_kept += is_marked(block);
      std::memset(block.data, kMark, block.n_bytes);
    }
    EXPECT_EQ(n_kept, 4u) << "round " << round;
  }
  for (const page_pool::Block& block : blocks) page_pool::give_back(block);
  page_pool::trim();
  page_pool::give_back(take_marked(kLimit + 2 * kMiB));  // larger than all that may be kept
  const page_pool::Block fresh = page_pool::take(kLimit + 2 * kMiB);
  EXPECT_FALSE(is_marked(fresh));
  page_pool::give_back(fresh);
}

TEST_F(PagePool, MoreThanThereIsIsABadAlloc) {
  EXPECT_THROW(page_pool::take(UINT64_MAX), std::bad_alloc);
  EXPECT_THROW(page_pool::take_zeroed(UINT64_MAX), std::bad_alloc);
  EXPECT_THROW(page_pool::take(UINT64_MAX - kHugePageBytes), std::bad_alloc);
}

TEST_F(PagePool, ABlockHasOneOwnerAtATime) {
  std::atomic<int> n_wrong{0};
  on_threads(4, [&](int number) {
    const auto own = static_cast<uint8_t>(number + 1);
    for (int i = 0; i < 60; ++i) {
      const page_pool::Block block = page_pool::take(static_cast<uint64_t>(2 + (i + number) % 3 * 2) * kMiB);
      for (size_t at = 0; at < block.n_bytes; at += 4096) block.data[at] = own;
      for (size_t at = 0; at < block.n_bytes; at += 4096) n_wrong += block.data[at] != own;
      page_pool::give_back(block);
      if (i % 20 == 19) page_pool::trim();
    }
  });
  EXPECT_EQ(n_wrong, 0);
}

TEST(Settings, AreWholeNumbersOfMiB) {
  const auto setting = [](const char* value) {
#ifdef _WIN32
    _putenv_s("GGUF_NATIVE_TEST_MB", value);
#else
    setenv("GGUF_NATIVE_TEST_MB", value, 1);
#endif
    return megabytes_setting("GGUF_NATIVE_TEST_MB");
  };
  EXPECT_EQ(setting("0"), uint64_t{0});
  EXPECT_EQ(setting("12"), uint64_t{12} << 20);
  EXPECT_EQ(setting("17592186044414"), uint64_t{17592186044414} << 20);
  for (const char* const value : {"", "x", "12 MB", "1.5", "17592186044415", "99999999999999999999"}) {
    EXPECT_FALSE(setting(value)) << value;
  }
  EXPECT_FALSE(megabytes_setting("GGUF_NATIVE_NO_SUCH_SETTING"));
}

}  // namespace
}  // namespace gguf::test
