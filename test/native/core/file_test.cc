#include "core/file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace gguf::test {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  fs::path folder;

  void SetUp() override {
    static int count = 0;
    folder = fs::temp_directory_path() /
             ("gguf-native-" + std::to_string(std::rand()) + "-" + std::to_string(count++));
    fs::create_directories(folder);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  fs::path write(const fs::path& name, const std::string& content) {
    const fs::path path = folder / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static Result<std::shared_ptr<File>> open(const fs::path& path, Access access = Access::kMap) {
    return File::open(path.u8string(), access);
  }
  static std::string read_all(const File& file) {
    std::string content(file.size(), '?');
    const Status status = file.read(0, content.data(), content.size());
    EXPECT_FALSE(status) << status->detail;
    return content;
  }
};

TEST_F(FileTest, Read) {
  const auto result = open(write("a.gguf", "some content"), Access::kRead);
  ASSERT_TRUE(result.ok());
  const File& file = *result.value();
  EXPECT_EQ(file.data(), nullptr);
  EXPECT_EQ(read_all(file), "some content");
  char part[4];
  EXPECT_FALSE(file.read(5, part, 4));
  EXPECT_EQ(std::string(part, 4), "cont");
  EXPECT_FALSE(file.read(12, part, 0));
}

TEST_F(FileTest, ReadPastTheEnd) {
  for (const Access access : {Access::kMap, Access::kRead}) {
    const auto result = open(write("a.gguf", "some content"), access);
    char part[4];
    for (const uint64_t offset : {uint64_t{9}, uint64_t{12}, uint64_t{13}, UINT64_MAX - 1, UINT64_MAX}) {
      const Status status = result.value()->read(offset, part, 4);
      ASSERT_TRUE(status.has_value());
      EXPECT_EQ(status->code, ErrorCode::kTruncated);
    }
  }
}

TEST_F(FileTest, PathWithNul) {
  const auto result = File::open(write("a.gguf", "x").u8string() + std::string(1, '\0') + "b", Access::kMap);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kOpen);
}

#ifndef _WIN32

TEST_F(FileTest, ChildrenDoNotInheritIt) {
  const fs::path path = write("a.gguf", "x");
  const auto result = open(path);
  int n_found = 0;
  for (int fd = 0; fd < 1024; fd++) {
    struct stat opened, wanted;
    if (fstat(fd, &opened) != 0 || stat(path.c_str(), &wanted) != 0 || opened.st_ino != wanted.st_ino)
      continue;
    n_found++;
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(n_found, 1);
}

#endif

}  // namespace
}  // namespace gguf::test
