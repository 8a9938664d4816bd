// Files that are truncated while they are mapped. What other faults do is in ../faults: it takes processes of
// their own.
#ifndef _WIN32

#include "core/fault_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/file.h"

namespace gguf::test {
namespace {

namespace fs = std::filesystem;

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

class TruncatedFile : public testing::Test {
 protected:
  fs::path folder;

  void SetUp() override {
    folder = fs::temp_directory_path() / ("gguf-native-truncated-" + std::to_string(getpid()) + "-" +
                                          testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  fs::path write(const std::string& name, size_t n_bytes) {
    std::ofstream(folder / name, std::ios::binary) << std::string(n_bytes, 'x');
    return folder / name;
  }
  static std::shared_ptr<File> map(const fs::path& path) {
    auto result = File::open(path.u8string(), Access::kMap);
    EXPECT_TRUE(result.ok());
    EXPECT_NE(result.value()->data(), nullptr);
    return result.value();
  }
};

size_t count_x(const File& file, size_t begin, size_t end) {
  size_t count = 0;
  for (size_t i = begin; i < end; i++) count += file.data()[i] == 'x';
  return count;
}

TEST_F(TruncatedFile, ReadsAsZerosAndIsNoted) {
  const fs::path path = write("a", 64 * kPage);
  const auto file = map(path);
  EXPECT_FALSE(file->check(0, file->size()));
  const size_t cut = 10 * kPage + 100;
  fs::resize_file(path, cut);
  EXPECT_EQ(count_x(*file, 0, file->size()), cut);
  EXPECT_FALSE(file->check(0, cut));
  EXPECT_FALSE(file->check(cut, 0));
  for (const auto& [offset, n_bytes] : {std::pair<uint64_t, uint64_t>{0, cut + 1},
                                        {cut, 1},
                                        {cut - 1, 2},
                                        {63 * kPage, kPage},
                                        {1, UINT64_MAX},
                                        {UINT64_MAX, 1}}) {
    const Status lost = file->check(offset, n_bytes);
    ASSERT_TRUE(lost.has_value()) << offset;
    EXPECT_EQ(lost->code, ErrorCode::kTruncated);
    EXPECT_EQ(lost->offset, cut);
    EXPECT_EQ(lost->detail, "the file ends at byte " + std::to_string(cut) + "; it had " +
                                std::to_string(64 * kPage) + " bytes when it was opened");
  }
}

TEST_F(TruncatedFile, CutAgainEndsAtTheFirstByteThatWasMissing) {
  const fs::path path = write("a", 64 * kPage);
  const auto file = map(path);
  for (const size_t pages : {40, 10}) {
    fs::resize_file(path, pages * kPage);
    EXPECT_EQ(file->data()[(pages + 5) * kPage], 0);
  }
  fs::resize_file(path, 64 * kPage);  // only what was noted tells
  const Status lost = file->check(0, file->size());
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->offset, 10 * kPage);
}

TEST_F(TruncatedFile, ReadingMappedAndReadingTheFileFailAlike) {
  const fs::path path = write("a", 64 * kPage);
  const auto mapped = map(path);
  const auto read = File::open(path.u8string(), Access::kRead).value();
  const size_t cut = 10 * kPage + 100;
  fs::resize_file(path, cut);
  std::vector<uint8_t> bytes(20 * kPage);
  for (const size_t offset : {size_t{0}, cut - 1, cut, 20 * kPage}) {
    for (const size_t n_bytes : {size_t{1}, size_t{2}, kPage, 20 * kPage}) {
      const Status a = mapped->check(offset, n_bytes), b = read->read(offset, bytes.data(), n_bytes);
      ASSERT_EQ(a.has_value(), b.has_value()) << offset << ", " << n_bytes;
      if (!a) continue;
      EXPECT_EQ(a->code, b->code);
      EXPECT_EQ(a->offset, b->offset);
      EXPECT_EQ(a->detail, b->detail);
    }
  }
}

TEST_F(TruncatedFile, ACutInTheMiddleOfTheLastPageIsNoted) {
  const fs::path path = write("a", 12);  // no page is missing: the rest of the last page reads as zeros
  const auto file = map(path);
  fs::resize_file(path, 6);
  EXPECT_EQ(count_x(*file, 0, 12), 6u);
  EXPECT_FALSE(file->check(0, 6));
  EXPECT_TRUE(file->check(0, 7).has_value());
}

TEST_F(TruncatedFile, CutToNothing) {
  const fs::path path = write("a", 3 * kPage);
  const auto file = map(path);
  fs::resize_file(path, 0);
  EXPECT_EQ(count_x(*file, 0, file->size()), 0u);
  EXPECT_EQ(file->check(0, 1)->offset, 0u);
}

TEST_F(TruncatedFile, CanBeWrittenTo) {
  const fs::path path = write("a", 8 * kPage);
  const auto file = map(path);
  fs::resize_file(path, kPage);
  std::memset(file->data(), 'y', 8 * kPage);
  for (size_t i = 0; i < 8 * kPage; i++) ASSERT_EQ(file->data()[i], 'y');
  fs::resize_file(path, 2 * kPage);
  std::string content(2 * kPage, '?');
  std::ifstream(path, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size()));
  EXPECT_EQ(content, std::string(kPage, 'x') + std::string(kPage, '\0'));
}

TEST_F(TruncatedFile, StaysTruncatedWhenItGrowsAgain) {
  const fs::path path = write("a", 8 * kPage);
  const auto file = map(path);
  fs::resize_file(path, 2 * kPage + 5);
  EXPECT_EQ(count_x(*file, 5 * kPage, 6 * kPage), 0u);
  write("a", 8 * kPage);
  EXPECT_EQ(count_x(*file, 0, 8 * kPage), 3 * kPage);
  EXPECT_FALSE(file->check(0, 2 * kPage + 5));
  const Status lost = file->check(0, 8 * kPage);
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->code, ErrorCode::kTruncated);
  EXPECT_EQ(lost->offset, 2 * kPage + 5);
  EXPECT_EQ(lost->detail.find("the file changed while it was open"), 0u) << lost->detail;
}

TEST_F(TruncatedFile, DoesNotAffectOtherFiles) {
  std::vector<fs::path> paths;
  std::vector<std::shared_ptr<File>> files;
  for (int i = 0; i < 200; i++) {  // more than one group of the registry
    paths.push_back(write(std::to_string(i), 4 * kPage));
    files.push_back(map(paths.back()));
  }
  for (size_t i = 0; i < files.size(); i += 3) fs::resize_file(paths[i], kPage);
  for (size_t i = 0; i < files.size(); i++) {
    EXPECT_EQ(count_x(*files[i], 0, 4 * kPage), i % 3 == 0 ? kPage : 4 * kPage);
    EXPECT_EQ(files[i]->check(0, 4 * kPage).has_value(), i % 3 == 0);
  }
  // The place that a closed file had in the registry is used again, and remembers nothing.
  for (size_t i = 0; i < files.size(); i += 3) {
    files[i].reset();
    files[i] = map(write(std::to_string(i), 4 * kPage));
    EXPECT_FALSE(files[i]->check(0, 4 * kPage));
  }
}

TEST_F(TruncatedFile, SeveralMappingsOfOneFile) {
  const fs::path path = write("a", 4 * kPage);
  const auto first = map(path), second = map(path);
  fs::resize_file(path, kPage);
  EXPECT_EQ(count_x(*second, 0, 4 * kPage), kPage);
  EXPECT_EQ(count_x(*first, 0, 4 * kPage), kPage);
}

TEST_F(TruncatedFile, CostsOneFaultHoweverLargeItIs) {
  const fs::path path = write("a", kPage);
  constexpr uint64_t kSize = uint64_t{1} << 36;
  std::error_code failed;
  fs::resize_file(path, kSize, failed);
  if (failed) GTEST_SKIP() << "this file system has no such files: " << failed.message();
  const auto file = map(path);
  fs::resize_file(path, kPage);
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t at = 0; at < kSize; at += kSize / 1000) ASSERT_EQ(file->data()[at + 1], at == 0 ? 'x' : 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

/** A file is cut and grown without end, while threads read it, and others open, read and close theirs. */
TEST_F(TruncatedFile, OnManyThreads) {
  constexpr size_t kPages = 32;
  const fs::path path = write("changing", kPages * kPage), steady_path = write("steady", kPages * kPage);
  std::atomic<bool> stop{false};
  std::atomic<size_t> n_lost{0}, n_wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto file = map(path);
        const size_t size = file->size();
        const size_t n = count_x(*file, 0, size);
        const bool lost = file->check(0, size).has_value();
        n_lost += lost;
        (void)n;
      }
    });
    threads.emplace_back([&] {
      while (!stop) {
        const auto file = map(steady_path);
        n_wrong += count_x(*file, 0, kPages * kPage) != kPages * kPage;
        n_wrong += file->check(0, kPages * kPage).has_value();
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  for (size_t i = 1; std::chrono::steady_clock::now() < end; i++) {
    fs::resize_file(path, 1 + i * 7919 % (kPages * kPage));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    fs::resize_file(path, kPages * kPage);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_wrong, 0u);
  EXPECT_GT(n_lost, 0u);
}

}  // namespace
}  // namespace gguf::test

#endif  // !_WIN32
