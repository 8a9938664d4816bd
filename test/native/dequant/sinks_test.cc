// What kernels promise to sinks (kernels/kernel.h), and what the loop around them does: any class with these
// three functions is a sink.
#include <gtest/gtest.h>

#include <vector>

#include "dequant/dequant.h"
#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/numbers.h"
#include "dequant/kernels/put_blocks.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"
#include "test/native/core/guarded_bytes.h"

namespace gguf {
namespace {

/** Writes down what it is told. */
struct Recorder : TakesNumbers<Recorder> {
  std::vector<int> order;  // of the last group: `at` of each put
  std::vector<std::vector<int>> groups;
  std::vector<float> numbers;
  int next_numbers = 0;  // of each next_group
  int short_group_at = -1;

  void put(int at, const simd::Floats16& a, const simd::Floats16& b) {
    order.push_back(at);
    const size_t start = group_start() + static_cast<size_t>(at);
    if (numbers.size() < start + 32) numbers.resize(start + 32);
    simd::store<Store::kPlain>(&numbers[start], a, b);
  }
  void next_group(int n) {
    groups.push_back(order);
    order.clear();
    next_numbers = n;
  }
  void short_group() { short_group_at = static_cast<int>(groups.size()); }

  size_t group_start() const { return groups.size() * static_cast<size_t>(next_numbers); }
};

template <class Block>
Recorder record(const test::GuardedBytes& blocks, uint64_t n_blocks) {
  Recorder sink;
  put_blocks(reinterpret_cast<const Block*>(blocks.data()), n_blocks, sink);
  if (n_blocks > 0) sink.groups.push_back(sink.order);
  return sink;
}

template <class Block>
void expect_promises(const char* name, const Format& format) {
  constexpr int kBlocks = kGroup<Block>, kNumbers = kBlocks * Block::kElements;
  std::vector<int> usual;
  for (uint64_t n_blocks : {0, 1, kBlocks - 1, kBlocks, kBlocks + 1, 3 * kBlocks - 1, 3 * kBlocks}) {
    SCOPED_TRACE(testing::Message() << name << ", " << n_blocks << " blocks");
    std::vector<uint8_t> bytes(n_blocks * sizeof(Block));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i % 61);
    const test::GuardedBytes blocks(bytes.data(), bytes.size());  // there is nothing to read after them
    const Recorder sink = record<Block>(blocks, n_blocks);

    ASSERT_EQ(sink.groups.size(), (n_blocks + kBlocks - 1) / kBlocks);
    for (const std::vector<int>& order : sink.groups) {
      if (usual.empty()) usual = order;
      EXPECT_EQ(order, usual);
    }
    if (sink.groups.size() > 1) {
      EXPECT_EQ(sink.next_numbers, kNumbers);
    }
    const bool is_short = n_blocks % kBlocks != 0;
    EXPECT_EQ(sink.short_group_at, is_short ? static_cast<int>(sink.groups.size()) - 1 : -1);

    const uint64_t n_numbers = n_blocks * Block::kElements;
    std::vector<float> stored(n_numbers);
    dequantize(format, Out::kFloat32, Store::kPlain, false, blocks.data(), n_blocks, stored.data());
    ASSERT_GE(sink.numbers.size(), n_numbers);
    for (uint64_t i = 0; i < n_numbers; ++i) {
      if (stored[i] != stored[i]) continue;
      ASSERT_EQ(bits_of_float(sink.numbers[i]), bits_of_float(stored[i])) << i;
    }
  }
  std::vector<bool> seen(kNumbers / 32);
  for (int at : usual) {
    ASSERT_EQ(at % 32, 0) << name;
    ASSERT_FALSE(seen.at(static_cast<size_t>(at / 32))) << name << ": " << at << " is put twice";
    seen[static_cast<size_t>(at / 32)] = true;
  }
  EXPECT_EQ(usual.size(), seen.size()) << name << ": not all are put";
}

TEST(Sinks, GetEveryNumberOfAGroupOnceAndInTheSameOrder) {
#define FORMAT(name, id, fields) expect_promises<Block##name>(#name, *find_format(id));
#include "dequant/formats.def"
#undef FORMAT
}

}  // namespace
}  // namespace gguf
