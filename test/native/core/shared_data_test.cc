// Real files. They are not part of the repository; the environment variable GGUF_NATIVE_SHARED_DATA says
// where they are, by default ../shared/data beside it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/file.h"
#include "core/value_reader.h"
#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

namespace fs = std::filesystem;

fs::path shared_data() {
  const char* folder = std::getenv("GGUF_NATIVE_SHARED_DATA");
  return folder != nullptr ? fs::path(folder) : fs::path(GGUF_NATIVE_REPOSITORY) / ".." / "shared" / "data";
}

std::vector<fs::path> gguf_files() {
  std::vector<fs::path> paths;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(shared_data(), missing)) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Counter : public ValueVisitor {
 public:
  uint64_t n_values = 0;
  bool number(ValueType, const void*) override { return count(1); }
  bool boolean(bool) override { return count(1); }
  bool string(std::string_view) override { return count(1); }
  bool begin_array(ValueType, uint64_t) override { return true; }
  bool numbers(ValueType, const uint8_t*, uint64_t n, ByteOrder) override { return count(n); }
  bool booleans(const uint8_t*, uint64_t n) override { return count(n); }
  bool end_array() override { return true; }

 private:
  bool count(uint64_t n) {
    n_values += n;
    return true;
  }
};

#define SKIP_WITHOUT_SHARED_DATA()                                    \
  if (gguf_files().empty()) {                                         \
    GTEST_SKIP() << "no .gguf files in " << shared_data()             \
                 << " (GGUF_NATIVE_SHARED_DATA says where they are)"; \
  }

TEST(SharedData, EveryFileParses) {
  SKIP_WITHOUT_SHARED_DATA();
  for (const fs::path& path : gguf_files()) {
    SCOPED_TRACE(path.string());
    const auto file = File::open(path.u8string(), Access::kMap);
    ASSERT_TRUE(file.ok()) << file.error().detail;
    const uint8_t* bytes = file.value()->data();
    const uint64_t size = file.value()->size();
    const auto outcome = parse_header(bytes, size, size, type_size, {});
    ASSERT_TRUE(outcome.result.ok()) << describe(outcome);
    const Header& header = outcome.result.value();
    EXPECT_FALSE(header.keys.empty());
    for (const KeyValue& entry : header.keys) {
      Counter counter;
      const Status status = read_value(entry, header, bytes, 0, size, counter);
      EXPECT_FALSE(status) << status->detail;
      EXPECT_EQ(counter.n_values, entry.length) << entry.key;
      EXPECT_EQ(header.find_key(entry.key), &entry);
    }
    for (const TensorInfo& tensor : header.tensors) EXPECT_EQ(header.find_tensor(tensor.name), &tensor);
  }
}

TEST(SharedData, ReadInGrowingParts) {
  SKIP_WITHOUT_SHARED_DATA();
  for (const fs::path& path : gguf_files()) {
    SCOPED_TRACE(path.string());
    const auto file = File::open(path.u8string(), Access::kRead);
    ASSERT_TRUE(file.ok()) << file.error().detail;
    const uint64_t size = file.value()->size();
    for (uint64_t n_bytes = 4096;; n_bytes *= 2) {
      n_bytes = std::min(n_bytes, size);
      std::vector<uint8_t> bytes(n_bytes);
      ASSERT_FALSE(file.value()->read(0, bytes.data(), n_bytes));
      const auto outcome = parse_header(bytes.data(), n_bytes, size, type_size, {});
      if (outcome.result.ok()) break;
      ASSERT_TRUE(outcome.need_more) << describe(outcome);
      ASSERT_LT(n_bytes, size);
    }
  }
}

TEST(SharedData, CutFilesAreRefused) {
  SKIP_WITHOUT_SHARED_DATA();
  for (const fs::path& path : gguf_files()) {
    SCOPED_TRACE(path.string());
    const auto file = File::open(path.u8string(), Access::kMap);
    ASSERT_TRUE(file.ok());
    const uint64_t size = file.value()->size();
    const auto whole = parse_header(file.value()->data(), size, size, type_size, {});
    ASSERT_TRUE(whole.result.ok());
    const uint64_t header_end = std::min(whole.result.value().data_offset - 31, size);
    for (int i = 0; i < 200; i++) {
      const uint64_t n_bytes = header_end * static_cast<uint64_t>(i) / 200;
      const auto outcome = parse_header(file.value()->data(), n_bytes, n_bytes, type_size, {});
      ASSERT_FALSE(outcome.result.ok()) << n_bytes;
      EXPECT_EQ(outcome.result.error().code, ErrorCode::kTruncated) << describe(outcome);
    }
  }
}

}  // namespace
}  // namespace gguf::test
