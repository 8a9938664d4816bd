// Parsing and decoding while another thread scribbles over the bytes, as another process does over a mapped
// file. Whatever comes out, not a byte beyond the end is read: it is against a page that cannot be.
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

GgufWriter varied_file() {
  GgufWriter file;
  file.header(3, 6).key("name", ValueType::kString).string("some text");
  file.array_key("tokens", ValueType::kString, 40);
  for (int i = 0; i < 40; i++) file.string(std::string(static_cast<size_t>(i % 7), 't'));
  file.array_key("flags", ValueType::kBool, 9).zeros(9);
  file.array_key("scores", ValueType::kFloat32, 30).zeros(120);
  file.array_key("nested", ValueType::kArray, 2);
  file.array(ValueType::kArray, 1)
      .array(ValueType::kUint16, 3)
      .zeros(6)
      .array(ValueType::kString, 1)
      .string("x");
  file.alignment(32);
  for (int i = 0; i < 3; i++) file.tensor(std::string(1, static_cast<char>('a' + i)), {32, 2}, kQ4_0, 64 * i);
  return file.pad().zeros(192);
}

TEST(ParseChanging, ReadsNothingBeyondTheEnd) {
  const GgufWriter file = varied_file();
  const std::vector<uint8_t>& good = file.bytes();
  const ParseOutcome first = parse(file);
  ASSERT_TRUE(first.result.ok()) << describe(first);
  const Header& header = first.result.value();
  const GuardedBytes bytes(good.data(), good.size());
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    std::mt19937 random(1);
    volatile uint8_t* const at = bytes.data();
    while (!stop) {
      const size_t position = random() % good.size();
      at[position] = static_cast<uint8_t>(random() % 3 == 0 ? random() >> 8 : 0xff);
      for (int i = 0; i < 20; i++) at[position] = good[position];
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  size_t n_good = 0, n_bad = 0;
  while (std::chrono::steady_clock::now() < end) {
    const ParseOutcome outcome = parse_header(bytes.data(), bytes.size(), bytes.size(), type_size, {});
    (outcome.result.ok() ? n_good : n_bad)++;
    for (const KeyValue& entry : header.keys) {
      Reader reader;
      (void)read_value(entry, header, bytes.data(), 0, bytes.size(), reader);
    }
  }
  stop = true;
  scribbler.join();
  EXPECT_GT(n_good, 0u);
}

}  // namespace
}  // namespace gguf::test
