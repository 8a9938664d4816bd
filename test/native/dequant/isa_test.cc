// Every instruction set against the scalar one, which is the definition: any bytes, any number of blocks,
// every output and way of storing, reading and writing not a byte too much.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "dequant/block_fields.h"
#include "dequant/dequant.h"
#include "test/native/core/guarded_bytes.h"
#include "test/native/dequant/test_isas.h"

namespace gguf::test {
namespace {

constexpr Out kOuts[] = {Out::kFloat32, Out::kFloat16, Out::kBFloat16};

std::vector<uint8_t> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 13);
  return bytes;
}

/** Where outputs begin in a line: 0 for whole lines, 16 as memory of JavaScript often is. */
constexpr size_t kStarts[] = {0, 16};

std::vector<uint8_t> run(const Format& format, Out out, Store store, bool big_endian, const uint8_t* src,
                         uint64_t n_blocks, size_t start_in_line = 16) {
  const size_t n_bytes = n_blocks * format.block_elements * out_bytes(out);
  // With bytes on both sides that must stay as they are.
  constexpr size_t kMargin = 64;
  constexpr uint8_t kUntouched = 0xa5;
  std::vector<uint8_t> memory(n_bytes + 4 * kMargin, kUntouched);
  const size_t start =
      kMargin + (kMargin - reinterpret_cast<uintptr_t>(memory.data()) % kMargin) % kMargin + start_in_line;
  dequantize(format, out, store, big_endian, src, n_blocks, memory.data() + start);
  const auto first = memory.begin() + static_cast<ptrdiff_t>(start),
             end = first + static_cast<ptrdiff_t>(n_bytes);
  const auto is_touched = [](uint8_t byte) { return byte != kUntouched; };
  EXPECT_FALSE(std::any_of(memory.begin(), first, is_touched)) << format.name << ": wrote before its output";
  EXPECT_FALSE(std::any_of(end, memory.end(), is_touched)) << format.name << ": wrote behind its output";
  std::vector<uint8_t> numbers(first, end);
  unify_nans(numbers, out);
  return numbers;
}

std::vector<uint8_t> run_scalar(const Format& format, Out out, const uint8_t* src, uint64_t n_blocks) {
  const char* isa = active_isa();
  use_isa("scalar");
  std::vector<uint8_t> numbers = run(format, out, Store::kPlain, false, src, n_blocks);
  use_isa(isa);
  return numbers;
}

class Isa : public OnEveryIsa {};

TEST_P(Isa, EqualsScalarForAnyBytes) {
  for (const Format& format : formats()) {
    const uint64_t n_blocks = 65536 / format.block_elements + 1;
    const auto src = random_bytes(n_blocks * format.block_bytes, format.id + 1);
    for (Out out : kOuts) {
      const auto expected = run_scalar(format, out, src.data(), n_blocks);
      for (Store store : {Store::kPlain, Store::kStreaming}) {
        for (size_t start : kStarts) {
          EXPECT_EQ(run(format, out, store, false, src.data(), n_blocks, start), expected)
              << format.name << " as output " << static_cast<int>(out) << ", store "
              << static_cast<int>(store) << ", at " << start;
        }
      }
    }
  }
}

TEST_P(Isa, TakesAnyNumberOfBlocks) {
  for (const Format& format : formats()) {
    const uint64_t most = format.block_elements == 1 ? 1100 : 512 / format.block_elements + 3;  // two groups
    const auto src = random_bytes(most * format.block_bytes, format.id + 77);
    for (Out out : kOuts) {
      const auto expected = run_scalar(format, out, src.data(), most);
      const size_t block_out = format.block_elements * out_bytes(out);
      for (uint64_t n = 0; n <= most; n += format.block_elements == 1 ? 29 : 1) {
        const std::vector<uint8_t> begin(expected.begin(),
                                         expected.begin() + static_cast<ptrdiff_t>(n * block_out));
        for (Store store : {Store::kPlain, Store::kStreaming}) {
          for (size_t start : kStarts) {
            ASSERT_EQ(run(format, out, store, false, src.data(), n, start), begin)
                << format.name << ", " << n << " blocks, at " << start;
          }
        }
      }
    }
  }
}

TEST_P(Isa, ReadsNotAByteTooMuch) {
  for (const Format& format : formats()) {
    for (uint64_t n_blocks = 1; n_blocks <= 34; ++n_blocks) {
      const auto bytes = random_bytes(n_blocks * format.block_bytes, format.id + 5);
      const GuardedBytes src(bytes.data(), bytes.size());
      std::vector<float> numbers(n_blocks * format.block_elements);
      dequantize(format, Out::kFloat32, Store::kPlain, false, src.data(), n_blocks, numbers.data());
    }
  }
}

TEST_P(Isa, TakesAnyAlignment) {
  for (const Format& format : formats()) {
    const uint64_t n_blocks = 2048 / format.block_elements + 3;
    const size_t n_bytes = n_blocks * format.block_bytes;
    const auto bytes = random_bytes(n_bytes, format.id + 9);
    for (Out out : kOuts) {
      const auto expected = run_scalar(format, out, bytes.data(), n_blocks);
      for (size_t shift = 1; shift < 64; shift += 7) {
        std::vector<uint8_t> src(n_bytes + shift);
        std::memcpy(src.data() + shift, bytes.data(), n_bytes);
        const size_t element_shift = shift * out_bytes(out);
        std::vector<uint8_t> dst(expected.size() + element_shift);
        for (Store store : {Store::kPlain, Store::kStreaming}) {
          dequantize(format, out, store, false, src.data() + shift, n_blocks, dst.data() + element_shift);
          std::vector<uint8_t> actual(dst.begin() + static_cast<ptrdiff_t>(element_shift), dst.end());
          unify_nans(actual, out);
          ASSERT_EQ(actual, expected) << format.name << " shifted by " << shift;
        }
      }
    }
  }
}

TEST_P(Isa, SwapsBigEndianBlocks) {
  for (const Format& format : formats()) {
    const uint64_t n_blocks = 20000 / format.block_elements + 1;
    const auto src = random_bytes(n_blocks * format.block_bytes, format.id + 3);
    std::vector<uint8_t> swapped(src.size());
    swap_blocks(fields_of(format), src.data(), n_blocks, swapped.data());
    for (Out out : kOuts) {
      const auto expected = run_scalar(format, out, src.data(), n_blocks);
      for (Store store : {Store::kPlain, Store::kStreaming}) {
        for (size_t start : kStarts) {
          EXPECT_EQ(run(format, out, store, true, swapped.data(), n_blocks, start), expected)
              << format.name << ", at " << start;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Isa, testing::ValuesIn(available_isas()), isa_name_of);

TEST(Isas, ScalarIsAlwaysThereAndLast) {
  EXPECT_STREQ(available_isas().back(), "scalar");
}

TEST(Isas, AnUnknownOneIsRefused) {
  const char* before = active_isa();
  EXPECT_FALSE(use_isa("mmx"));
  EXPECT_STREQ(active_isa(), before);
}

TEST(Formats, AreFoundByTheirNumbers) {
  for (const Format& format : formats()) EXPECT_EQ(find_format(format.id), &format) << format.name;
  for (uint32_t id : {4u, 5u, 31u, 33u, 36u, 38u, 99u, 0xffffffffu})
    EXPECT_EQ(find_format(id), nullptr) << id;
}

}  // namespace
}  // namespace gguf::test
