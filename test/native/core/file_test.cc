#include "core/file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#ifndef _WIN32
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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
  /** What opening it fails with. */
  static Error error_of(const fs::path& path) {
    for (const Access access : {Access::kMap, Access::kRead}) {
      const auto result = open(path, access);
      EXPECT_FALSE(result.ok()) << path;
      if (result.ok()) return {};
      EXPECT_EQ(result.error().code, ErrorCode::kOpen);
      if (access == Access::kRead) return result.error();
    }
    return {};
  }
  static std::string read_all(const File& file) {
    std::string content(file.size(), '?');
    const Status status = file.read(0, content.data(), content.size());
    EXPECT_FALSE(status) << status->detail;
    return content;
  }
};

TEST_F(FileTest, Mapped) {
  const fs::path path = write("a.gguf", "some content");
  const auto result = open(path);
  ASSERT_TRUE(result.ok()) << result.error().detail;
  const File& file = *result.value();
  ASSERT_EQ(file.size(), 12u);
  ASSERT_NE(file.data(), nullptr);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(file.data()), 12), "some content");
  EXPECT_EQ(read_all(file), "some content");
}

TEST_F(FileTest, WritingToTheMappingDoesNotReachTheFile) {
  const fs::path path = write("a.gguf", "some content");
  const auto result = open(path);
  ASSERT_TRUE(result.ok());
  std::memcpy(result.value()->data(), "SOME", 4);
  std::string content;
  std::getline(std::ifstream(path), content);
  EXPECT_EQ(content, "some content");
}

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

TEST_F(FileTest, ReadAfterTheFileWasCut) {
  const fs::path path = write("a.gguf", "some content");
  const auto result = open(path, Access::kRead);
  fs::resize_file(path, 6);
  char part[8];
  EXPECT_FALSE(result.value()->read(0, part, 6));
  const Status status = result.value()->read(2, part, 8);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, ErrorCode::kTruncated);
  EXPECT_EQ(status->offset, 6u);
  EXPECT_NE(status->detail.find("ends at byte 6"), std::string::npos) << status->detail;
}

TEST_F(FileTest, Empty) {
  for (const Access access : {Access::kMap, Access::kRead}) {
    const auto result = open(write("empty.gguf", ""), access);
    ASSERT_TRUE(result.ok()) << result.error().detail;
    EXPECT_EQ(result.value()->size(), 0u);
    EXPECT_EQ(result.value()->data(), nullptr);
    char byte;
    EXPECT_FALSE(result.value()->read(0, &byte, 0));
    EXPECT_TRUE(result.value()->read(0, &byte, 1).has_value());
  }
}

TEST_F(FileTest, Missing) {
  const Error error = error_of(folder / "missing.gguf");
  EXPECT_EQ(std::system_category().default_error_condition(error.system_error),
            std::errc::no_such_file_or_directory);
  EXPECT_NE(error.detail.find("cannot open the file: "), std::string::npos) << error.detail;
}

TEST_F(FileTest, Directory) {
  EXPECT_NE(error_of(folder).detail.find("directory"), std::string::npos);
}

TEST_F(FileTest, PathsOfAllKinds) {
  for (const char* name : {u8"größe 大模型 😀.gguf", "with space.gguf", "-dash.gguf"}) {
    const auto result = open(write(fs::u8path(name), "x"));
    ASSERT_TRUE(result.ok()) << name << ": " << result.error().detail;
    EXPECT_EQ(result.value()->size(), 1u);
  }
}

TEST_F(FileTest, LongPath) {
  fs::path deep = folder;
  while (deep.u8string().size() < 1000) deep /= std::string(100, 'd');
  std::error_code failed;
  fs::create_directories(deep, failed);
  if (failed) GTEST_SKIP() << "this system makes no such path: " << failed.message();
  std::ofstream(deep / "a.gguf") << "x";
  EXPECT_TRUE(open(deep / "a.gguf").ok());
}

TEST_F(FileTest, PathThatIsTooLong) {
  EXPECT_NE(error_of(folder / std::string(100000, 'x')).detail, "");
}

TEST_F(FileTest, PathWithNul) {
  const auto result = File::open(write("a.gguf", "x").u8string() + std::string(1, '\0') + "b", Access::kMap);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kOpen);
}

TEST_F(FileTest, EmptyPath) {
  EXPECT_NE(error_of("").detail, "");
}

TEST_F(FileTest, Sparse) {
  const fs::path path = write("sparse.gguf", "GGUF");
  constexpr uint64_t kTebibyte = uint64_t{1} << 40;
  std::error_code failed;
  fs::resize_file(path, kTebibyte, failed);
  if (failed) GTEST_SKIP() << "this file system has no such files: " << failed.message();
  for (const Access access : {Access::kMap, Access::kRead}) {
    const auto result = open(path, access);
    ASSERT_TRUE(result.ok()) << result.error().detail;
    EXPECT_EQ(result.value()->size(), kTebibyte);
    char last[2] = {'?', '?'};
    EXPECT_FALSE(result.value()->read(kTebibyte - 2, last, 2));
    EXPECT_EQ(last[1], 0);
    if (access == Access::kMap && result.value()->data() != nullptr) {
      EXPECT_EQ(result.value()->data()[kTebibyte - 1], 0);
    }
  }
}

#ifndef _WIN32

TEST_F(FileTest, MissingHasItsNumber) {
  EXPECT_EQ(error_of(folder / "missing.gguf").system_error, ENOENT);
}

TEST_F(FileTest, DirectoryHasItsNumber) {
  EXPECT_EQ(error_of(folder).system_error, EISDIR);
}

TEST_F(FileTest, FileUsedAsDirectory) {
  EXPECT_EQ(error_of(write("a.gguf", "x") / "b.gguf").system_error, ENOTDIR);
}

TEST_F(FileTest, NoPermission) {
  const fs::path path = write("secret.gguf", "x");
  fs::permissions(path, fs::perms::none);
  // Root may read everything, so it becomes "nobody" for the while.
  const bool root = geteuid() == 0;
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "root cannot become somebody else here";
  const Error error = error_of(path);
  ASSERT_TRUE(!root || seteuid(0) == 0);
  EXPECT_EQ(error.system_error, EACCES);
}

TEST_F(FileTest, FifoDoesNotHang) {
  const fs::path path = folder / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  alarm(20);
  const Error error = error_of(path);
  alarm(0);
  EXPECT_EQ(error.system_error, EINVAL);
  EXPECT_EQ(error.detail, "it is a FIFO, not a regular file");
}

TEST_F(FileTest, Socket) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = (folder / "socket").string();
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_NE(error_of(path).system_error, 0);
  close(fd);
}

TEST_F(FileTest, Devices) {
  for (const char* path : {"/dev/zero", "/dev/null"}) {
    if (!fs::exists(path)) continue;
    const Error error = error_of(path);
    EXPECT_EQ(error.system_error, EINVAL);
    EXPECT_EQ(error.detail, "it is a character device, not a regular file");
  }
}

TEST_F(FileTest, FilesThatReportNoSize) {
  if (!fs::exists("/proc/self/status")) GTEST_SKIP() << "there is no /proc here";
  for (const Access access : {Access::kMap, Access::kRead}) {
    const auto result = open("/proc/self/status", access);
    ASSERT_TRUE(result.ok()) << result.error().detail;
    const File& file = *result.value();
    ASSERT_GT(file.size(), 5u);
    ASSERT_NE(file.data(), nullptr);
    EXPECT_EQ(std::memcmp(file.data(), "Name:", 5), 0);
    EXPECT_EQ(read_all(file).compare(0, 5, "Name:"), 0);
  }
}

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

TEST_F(FileTest, NothingStaysOpen) {
  const fs::path path = write("a.gguf", "x");
  const int before = dup(0);
  close(before);
  for (int i = 0; i < 2000; i++) {
    open(path, i % 2 == 0 ? Access::kMap : Access::kRead).ok();
    open(folder).ok();
  }
  const int after = dup(0);
  close(after);
  EXPECT_EQ(before, after);
}

#endif

}  // namespace
}  // namespace gguf::test
