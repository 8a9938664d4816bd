// The registry of memory that can be used by threads, asked while memory comes and goes.
#include "machine/pinned_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "machine/page_pool.h"
#include "test/native/work/work_support.h"

namespace gguf::test {
namespace {

TEST(PinnedMemory, IsAlignedAndLargeEnough) {
  for (const uint64_t n_bytes : {uint64_t{1}, uint64_t{100}, page_pool::kMinBytes - 1, page_pool::kMinBytes,
                                 3 * page_pool::kMinBytes}) {
    const auto memory = PinnedMemory::allocate(n_bytes);
    EXPECT_GE(memory->size(), n_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0u);
    std::memset(memory->data(), 1, static_cast<size_t>(memory->size()));
  }
  EXPECT_THROW(PinnedMemory::allocate(UINT64_MAX), std::bad_alloc);
}

TEST(PinnedMemory, IsZeroedWhereThatIsAskedFor) {
  for (const uint64_t n_bytes : {uint64_t{1000}, 3 * page_pool::kMinBytes}) {
    for (int round = 0; round < 3; ++round) {
      const auto memory = PinnedMemory::allocate_zeroed(n_bytes);
      uint8_t* const data = memory->data();
      EXPECT_TRUE(std::all_of(data, data + n_bytes, [](uint8_t byte) { return byte == 0; }));
      std::memset(data, 1, static_cast<size_t>(memory->size()));
    }
  }
  EXPECT_THROW(PinnedMemory::allocate_zeroed(UINT64_MAX), std::bad_alloc);
}

TEST(PinnedMemory, IsFoundByAnyRangeInIt) {
  const auto memory = PinnedMemory::allocate(1000), other = PinnedMemory::allocate(1000);
  const uint8_t* const data = memory->data();
  const uint64_t size = memory->size();
  EXPECT_EQ(PinnedMemory::find(data, size), memory);
  EXPECT_EQ(PinnedMemory::find(data, 0), memory);
  EXPECT_EQ(PinnedMemory::find(data + 10, 1), memory);
  EXPECT_EQ(PinnedMemory::find(data + size - 1, 1), memory);
  EXPECT_EQ(PinnedMemory::find(other->data() + 5, 5), other);
}

TEST(PinnedMemory, IsNotFoundByARangeThatLeavesIt) {
  const auto memory = PinnedMemory::allocate(page_pool::kMinBytes);
  const uint8_t* const data = memory->data();
  const uint64_t size = memory->size();
  EXPECT_EQ(PinnedMemory::find(data - 1, 2), nullptr);
  EXPECT_EQ(PinnedMemory::find(data, size + 1), nullptr);
  EXPECT_EQ(PinnedMemory::find(data + size - 1, 2), nullptr);
  EXPECT_EQ(PinnedMemory::find(data + 1, UINT64_MAX), nullptr);
  const int on_stack = 0;
  EXPECT_EQ(PinnedMemory::find(&on_stack, sizeof on_stack), nullptr);
  EXPECT_EQ(PinnedMemory::find(nullptr, 1), nullptr);
}

TEST(PinnedMemory, IsHeldByWhoeverFoundIt) {
  auto memory = PinnedMemory::allocate(100);
  uint8_t* const data = memory->data();
  auto found = PinnedMemory::find(data, 100);
  memory.reset();
  std::memset(data, 7, 100);
  EXPECT_EQ(PinnedMemory::find(data, 100), found);
  found.reset();
  EXPECT_EQ(PinnedMemory::find(data, 100), nullptr);
}

TEST(PinnedMemory, LargeMemoryGoesBackToThePool) {
  page_pool::trim();
  auto memory = PinnedMemory::allocate(5 * page_pool::kMinBytes);
  const uint8_t* const data = memory->data();
  memory.reset();
  memory = PinnedMemory::allocate(5 * page_pool::kMinBytes);
  EXPECT_EQ(memory->data(), data);
  EXPECT_EQ(PinnedMemory::find(data, 1), memory);
  memory.reset();
  page_pool::trim();
}

TEST(PinnedMemory, AMappingKeepsItsFile) {
  const BlockFile stored(std::vector<uint8_t>(1000, 'y'));
  auto file = stored.open(Access::kMap);
  const std::weak_ptr<File> observed = file;
  const uint8_t* const data = file->data();
  auto memory = PinnedMemory::of_mapping(file, stored.path());
  EXPECT_EQ(memory->data(), data);
  EXPECT_EQ(memory->size(), file->size());
  file.reset();
  EXPECT_EQ(PinnedMemory::find(data + BlockFile::kOffset, 1000), memory);
  EXPECT_EQ(data[BlockFile::kOffset], 'y');
  memory.reset();
  EXPECT_TRUE(observed.expired());
}

/** Threads look for memory at addresses that others free and get again meanwhile. What they find is whole and
    stays while they use it. */
TEST(PinnedMemory, IsFoundWhileOthersComeAndGo) {
  constexpr uint64_t kBytes = 256;
  constexpr int kAddresses = 8;
  std::atomic<const uint8_t*> addresses[kAddresses] = {};
  std::atomic<int> n_found{0}, n_wrong{0}, n_makers{2};
  on_threads(4, [&](int number) {
    if (number < 2) {
      std::shared_ptr<PinnedMemory> own[kAddresses / 2];
      for (int i = 0; i < 4000 || (n_found == 0 && i < 10000000); ++i) {
        const int slot = i % (kAddresses / 2);
        own[slot] = PinnedMemory::allocate(kBytes);
        addresses[number * (kAddresses / 2) + slot].store(own[slot]->data(), std::memory_order_relaxed);
      }
      --n_makers;
      return;
    }
    for (int i = 0; n_makers > 0 || i < 1000; ++i) {
      const uint8_t* const data = addresses[i % kAddresses].load(std::memory_order_relaxed);
      if (data == nullptr) continue;
      const auto found = PinnedMemory::find(data, kBytes);
      if (found == nullptr) continue;
      ++n_found;
      n_wrong += found->data() != data || found->size() != kBytes;
    }
  });
  EXPECT_GT(n_found, 0);
  EXPECT_EQ(n_wrong, 0);
}

}  // namespace
}  // namespace gguf::test
