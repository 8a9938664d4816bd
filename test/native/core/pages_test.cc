#include "core/pages.h"

#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <cstring>
#include <memory>
#include <vector>

#include "core/file.h"

namespace gguf::test {
namespace {

TEST(Pages, AreZeroedAndStartOnAHugePage) {
  for (const size_t n_bytes : {kHugePageBytes, 3 * kHugePageBytes}) {
    uint8_t* const pages = map_pages(n_bytes);
    ASSERT_NE(pages, nullptr);
#ifndef _WIN32
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages) % kHugePageBytes, 0u);
#endif
    for (size_t at = 0; at < n_bytes; at += 1024) ASSERT_EQ(pages[at], 0);
    std::memset(pages, 1, n_bytes);
    unmap_pages(pages, n_bytes);
  }
}

TEST(Pages, ThatThereAreNotAreNull) {
  EXPECT_EQ(map_pages(SIZE_MAX / kHugePageBytes * kHugePageBytes), nullptr);
  EXPECT_EQ(map_pages((SIZE_MAX / 2) / kHugePageBytes * kHugePageBytes), nullptr);
}

TEST(Pages, HugeOnesCanBeAskedForAnywhere) {
  std::vector<uint8_t> memory(3 * kHugePageBytes, 7);
  want_huge_pages(memory.data() + 1, memory.size() - 2);
  want_huge_pages(memory.data(), 0);
  EXPECT_EQ(memory, std::vector<uint8_t>(3 * kHugePageBytes, 7));  // a request, nothing else
}

TEST(Pages, MemoryOfTheMachine) {
#if defined(__linux__) || defined(__APPLE__) || defined(_WIN32)
  EXPECT_GT(physical_memory(), uint64_t{64} << 20);
#endif
  EXPECT_LT(physical_memory(), uint64_t{1} << 50);
}

#ifdef __linux__

size_t small_page() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/** Small pages that are not present yet; unmapped at the end. */
struct FreshPages {
  explicit FreshPages(size_t n_pages) : n_bytes(n_pages * small_page()) {
    void* const mapped = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    data = static_cast<uint8_t*>(mapped);
    madvise(mapped, n_bytes, MADV_NOHUGEPAGE);  // so that a write brings in one page
  }
  ~FreshPages() { munmap(data, n_bytes); }

  uint8_t* data;
  size_t n_bytes;
};

TEST(Pages, ArePresentOnceTheyWereWritten) {
  const size_t page = small_page();
  const FreshPages fresh(4);
  EXPECT_FALSE(pages_are_present(fresh.data, 1));
  EXPECT_TRUE(pages_are_present(fresh.data, 0));
  fresh.data[page + 5] = 1;
  EXPECT_TRUE(pages_are_present(fresh.data + page, page));
  EXPECT_TRUE(pages_are_present(fresh.data + 2 * page - 1, 1));
  EXPECT_FALSE(pages_are_present(fresh.data + page - 1, 2));  // touches a page that is not
  EXPECT_FALSE(pages_are_present(fresh.data + page, page + 1));
  std::memset(fresh.data, 1, fresh.n_bytes);
  EXPECT_TRUE(pages_are_present(fresh.data, fresh.n_bytes));
}

TEST(Pages, ArePresentOverManySteps) {
  const size_t n_pages = 512 * 2 + 100;  // the system is asked about 512 at a time
  const size_t page = small_page();
  const FreshPages fresh(n_pages);
  for (size_t i = 0; i < n_pages; ++i) fresh.data[i * page] = 1;
  EXPECT_TRUE(pages_are_present(fresh.data, fresh.n_bytes));
  for (const size_t gone : {size_t{511}, size_t{512}, n_pages - 1}) {
    ASSERT_EQ(madvise(fresh.data + gone * page, page, MADV_DONTNEED), 0);
    EXPECT_FALSE(pages_are_present(fresh.data, fresh.n_bytes)) << gone;
    fresh.data[gone * page] = 1;
  }
  EXPECT_TRUE(pages_are_present(fresh.data, fresh.n_bytes));
}

TEST(Pages, ThatAreNotMappedAreNotPresent) {
  const size_t page = small_page();
  const FreshPages fresh(3);
  std::memset(fresh.data, 1, fresh.n_bytes);
  ASSERT_EQ(munmap(fresh.data + page, page), 0);
  EXPECT_FALSE(pages_are_present(fresh.data, fresh.n_bytes));
  EXPECT_TRUE(pages_are_present(fresh.data, page));
}

TEST(Pages, ReadingAheadOfAFileChangesNothing) {
  const auto file = File::open("/proc/self/exe", Access::kMap).value();
  ASSERT_NE(file->data(), nullptr);
  const std::vector<uint8_t> before(file->data(), file->data() + 10000);
  will_read(file->data() + 5, static_cast<size_t>(file->size() - 5));
  will_read(file->data(), 0);
  EXPECT_EQ(std::vector<uint8_t>(file->data(), file->data() + 10000), before);
}

TEST(Pages, ThatAreForgottenAreReadAgain) {
  const auto file = File::open("/proc/self/exe", Access::kMap).value();
  const size_t page = small_page();
  ASSERT_GT(file->size(), 4 * page);
  const std::vector<uint8_t> before(file->data(), file->data() + 4 * page);
  const auto is_written = [&](size_t index) { return file->data()[index * page] != before[index * page]; };
  for (size_t i = 0; i < 4; i++) file->data()[i * page] ^= 1;
  file->forget(page - 1, page + 1);  // no whole page
  file->forget(0, 0);
  file->forget(page, file->size() + 1);  // not in the file
  for (size_t i = 0; i < 4; i++) EXPECT_TRUE(is_written(i)) << i;
  file->forget(1, 3 * page + 1);
  EXPECT_TRUE(is_written(0) && is_written(3));
  EXPECT_TRUE(!is_written(1) && !is_written(2));
}

#endif  // __linux__

}  // namespace
}  // namespace gguf::test
