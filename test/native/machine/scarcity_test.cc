// Memory and threads that the system does not give: work is done by those that there are, and nothing that
// frees memory needs some.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "machine/helper_threads.h"
#include "machine/page_pool.h"
#include "machine/pinned_memory.h"
#include "test/native/core/allocation_meter.h"
#include "test/native/machine/failing_threads.h"

namespace gguf::test {
namespace {

using Scratch = std::vector<uint8_t>;
constexpr size_t kMiB = size_t{1} << 20;
constexpr char kNoMeter[] = "ThreadSanitizer has its own new";

TEST(NoMemory, IsNeededToKeepBlocksOfPages) {
  if (!memory_can_end) GTEST_SKIP() << kNoMeter;
  page_pool::trim();
  std::vector<page_pool::Block> blocks;
  for (size_t n : {4, 2, 6, 2}) blocks.push_back(page_pool::take(n * kMiB));
  std::vector<uint8_t*> taken;
  taken.reserve(blocks.size());
  {
    const OutOfMemory none(0);
    for (const page_pool::Block& block : blocks) page_pool::give_back(block);
    for (size_t n : {2, 2, 4, 6}) taken.push_back(page_pool::take(n * kMiB).data);
  }
  // The same blocks, each of the size that was asked for.
  EXPECT_TRUE(taken[0] == blocks[1].data || taken[0] == blocks[3].data);
  EXPECT_TRUE(taken[1] == blocks[1].data || taken[1] == blocks[3].data);
  EXPECT_NE(taken[0], taken[1]);
  EXPECT_EQ(taken[2], blocks[0].data);
  EXPECT_EQ(taken[3], blocks[2].data);
  const OutOfMemory none(0);
  for (const page_pool::Block& block : blocks) page_pool::give_back(block);
  page_pool::trim();
}

TEST(NoMemory, IsNeededToFreePinnedMemory) {
  if (!memory_can_end) GTEST_SKIP() << kNoMeter;
  std::vector<std::shared_ptr<PinnedMemory>> kept;
  for (size_t n_bytes : {size_t{100}, kMiB, 3 * kMiB}) kept.push_back(PinnedMemory::allocate(n_bytes));
  const OutOfMemory none(0);
  while (!kept.empty()) kept.pop_back();
}

TEST(NoMemory, LeavesNothingBehindWherePinnedMemoryWasNotMade) {
  if (!memory_can_end) GTEST_SKIP() << kNoMeter;
  for (const size_t n_bytes : {size_t{100}, 3 * kMiB}) {
    bool is_made = false;
    for (size_t n = 0; !is_made && n < 20; ++n) {
      const OutOfMemory limit(n);
      try {
        PinnedMemory::allocate(n_bytes);
        is_made = true;
      } catch (const std::bad_alloc&) {
      }
    }
    EXPECT_TRUE(is_made);
  }
}

TEST(NoThreads, LeaveTheWorkToTheCaller) {
  if (!threads_can_fail)
    GTEST_SKIP()
        << "creating threads can be made to fail on Linux only, in a program that is linked dynamically";
  HelperThreads pool;
  Scratch scratch;
  constexpr int kCalls = 1000;
  {
    const FailingThreads none;
    for (int i = 0; i < kCalls; ++i) {
      int n_done = 0;
      pool.run(3, scratch, [&](Scratch&) { ++n_done; });
      EXPECT_EQ(n_done, 1);
      EXPECT_FALSE(pool.wants_help());
    }
    // Not with every call: trying takes long, and all callers wait for it.
    EXPECT_GE(none.attempts(), 1);
    EXPECT_LT(none.attempts(), kCalls / 2);
  }
  // Once there are threads again, they help.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::atomic<int> n_working{0};
  while (n_working < 2 && std::chrono::steady_clock::now() < deadline) {
    n_working = 0;
    pool.run(1, scratch, [&](Scratch&) {
      ++n_working;
      const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
      while (n_working < 2 && std::chrono::steady_clock::now() < soon) std::this_thread::yield();
    });
  }
  EXPECT_EQ(n_working, 2);
}

}  // namespace
}  // namespace gguf::test
