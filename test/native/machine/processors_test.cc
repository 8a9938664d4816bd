// The number of threads that a process can run at the same time.
#include "machine/processors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace gguf::test {
namespace {

namespace fs = std::filesystem;

/** A file system of control groups, made of ordinary files. */
class ControlGroups : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / (std::string("gguf-native-") + test->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void limit(const std::string& group, const std::string& text) {
    fs::create_directories(root_ / group);
    std::ofstream(root_ / group / "cpu.max") << text << '\n';
  }
  std::optional<int> processors(const std::string& membership) const {
    return processors_of_control_group(membership, root_.string());
  }

 private:
  fs::path root_;
};

TEST_F(ControlGroups, WithoutALimit) {
  EXPECT_EQ(processors("0::/"), std::nullopt);
  limit("", "max 100000");
  EXPECT_EQ(processors("0::/"), std::nullopt);
  EXPECT_EQ(processors("0::/gone/group"), std::nullopt);
}

TEST_F(ControlGroups, OfAContainer) {
  limit("", "200000 100000");
  EXPECT_EQ(processors("0::/\n"), 2);
  EXPECT_EQ(processors("0::/../../outside\n"), 2);
}

TEST_F(ControlGroups, AreRoundedDownToAtLeastOne) {
  limit("", "399999 100000");
  EXPECT_EQ(processors("0::/"), 3);
  limit("", "50000 100000");
  EXPECT_EQ(processors("0::/"), 1);
  limit("", "18446744073709551615 1");
  EXPECT_EQ(processors("0::/"), std::numeric_limits<int>::max());
}

TEST_F(ControlGroups, HaveTheLeastOfThoseAroundThem) {
  limit("a/b/c", "800000 100000");
  limit("a", "300000 100000");
  limit("other", "100000 100000");
  EXPECT_EQ(processors("0::/a/b/c"), 3);
  EXPECT_EQ(processors("0::/a/b"), 3);
  limit("a/b/c", "200000 100000");
  EXPECT_EQ(processors("0::/a/b/c"), 2);
}

TEST_F(ControlGroups, OfVersionOneAreNotRead) {
  limit("a", "100000 100000");
  EXPECT_EQ(processors("2:cpu,cpuacct:/a\n1:name=systemd:/a\n"), std::nullopt);
  EXPECT_EQ(processors("2:cpu,cpuacct:/b\n0::/a\n"), 1);
  EXPECT_EQ(processors(""), std::nullopt);
}

TEST_F(ControlGroups, WithAnythingInTheirFiles) {
  for (const char* text : {"", "max", "100000", "-1 x", "100000 0", "a b"}) {
    limit("", text);
    EXPECT_EQ(processors("0::/"), std::nullopt) << text;
  }
}

TEST(Processors, AreNoMoreThanTheMachineHas) {
  EXPECT_GE(processors(), 1);
  EXPECT_LE(processors(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace gguf::test
