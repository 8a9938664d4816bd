// Statistics and comparisons against their rules, written down a second time: to the bit, for every format,
// on every instruction set, by one thread and by several, from memory and from files.
#include "work/chunked_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/fault_guard.h"
#include "dequant/dequant.h"
#include "dequant/totals.h"
#include "test/native/work/work_support.h"
#include "work/chunked_comparison.h"

namespace gguf::test {
namespace {

using Numbers = std::vector<float>;
using Fields = std::vector<double>;

/** Whether this is a program of a sanitizer, or of another architecture, which an emulator may run. */
constexpr bool is_slowed_down =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !(defined(__x86_64__) || defined(_M_X64))
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

constexpr size_t kPiece = 4096, kChunk = size_t{1} << 18;

double add_up(std::vector<double> sums) {
  for (size_t h = 16; h >= 1; h /= 2) {
    for (size_t i = 0; i < h; ++i) sums[i] += sums[i + h];
  }
  return sums[0];
}

/** Number i, by `value`, to number i % 32 of 32 sums. */
template <class Value>
double sum_of(size_t n, Value value) {
  std::vector<double> sums(32, 0.0);
  for (size_t i = 0; i < n; ++i) sums[i % 32] += value(i);
  return add_up(sums);
}

struct Part {
  double n = 0, zeros = 0, mean = 0, m2 = 0;
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();

  void join(const Part& next) {
    if (next.n == 0) return;
    const double d = next.mean - mean, share = next.n / (n + next.n);
    mean = n == 0 ? next.mean : mean + d * share;
    m2 = n == 0 ? next.m2 : m2 + (next.m2 + d * d * (n * share));
    n += next.n;
    zeros += next.zeros;
    min = std::min(min, next.min);
    max = std::max(max, next.max);
  }
};

Part part_of(const Numbers& x) {
  Part part;
  part.n = static_cast<double>(x.size());
  if (x.empty()) return part;
  const double s = sum_of(x.size(), [&](size_t i) { return double{x[i]}; });
  const double q = sum_of(x.size(), [&](size_t i) { return double{x[i]} * x[i]; });
  part.mean = s / part.n;
  part.m2 = q - s * s / part.n;
  if (q > 1024 * part.m2) {
    const auto distance = [&](size_t i) { return x[i] - part.mean; };
    const double s2 = sum_of(x.size(), distance);
    const double q2 = sum_of(x.size(), [&](size_t i) { return distance(i) * distance(i); });
    part.m2 = std::max(0.0, q2 - s2 * s2 / part.n);
  }
  for (const float number : x) {
    part.zeros += number == 0;
    part.min = std::min(part.min, double{number}) + 0.0;
    part.max = std::max(part.max, double{number}) + 0.0;
  }
  return part;
}

Fields statistics_by_the_rule(const Numbers& x) {
  Part whole;
  double nan = 0, positive = 0, negative = 0;
  for (size_t chunk = 0; chunk < x.size(); chunk += kChunk) {
    Part joined;
    const size_t chunk_end = std::min(chunk + kChunk, x.size());
    for (size_t at = chunk; at < chunk_end; at += kPiece) {
      Numbers finite;
      for (size_t i = at; i < std::min(at + kPiece, chunk_end); ++i) {
        if (std::isfinite(x[i])) finite.push_back(x[i]);
        nan += std::isnan(x[i]);
        positive += x[i] == std::numeric_limits<float>::infinity();
        negative += x[i] == -std::numeric_limits<float>::infinity();
      }
      joined.join(part_of(finite));
    }
    whole.join(joined);
  }
  return {static_cast<double>(x.size()),
          nan,
          positive,
          negative,
          whole.zeros,
          whole.min,
          whole.max,
          whole.mean,
          whole.m2};
}

Fields comparison_by_the_rule(const Numbers& x, const Numbers& y) {
  Fields whole(7, 0.0);
  const auto join = [](Fields& total, const Fields& next) {
    for (size_t i = 0; i < 7; ++i) total[i] = i == 3 ? std::max(total[i], next[i]) : total[i] + next[i];
  };
  for (size_t chunk = 0; chunk < x.size(); chunk += kChunk) {
    Fields joined(7, 0.0);
    const size_t chunk_end = std::min(chunk + kChunk, x.size());
    for (size_t at = chunk; at < chunk_end; at += kPiece) {
      const size_t end = std::min(at + kPiece, chunk_end);
      Numbers a, b;
      Fields piece(7, 0.0);
      piece[0] = static_cast<double>(end - at);
      for (size_t i = at; i < end; ++i) {
        const bool differ = x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]));
        piece[1] += differ;
        if (std::isfinite(x[i]) && std::isfinite(y[i])) {
          a.push_back(x[i]);
          b.push_back(y[i]);
        } else {
          piece[2] += differ;
        }
      }
      const auto distance = [&](size_t i) { return std::fabs(double{a[i]} - b[i]); };
      for (size_t i = 0; i < a.size(); ++i) piece[3] = std::max(piece[3], distance(i));
      piece[4] = sum_of(a.size(), distance);
      piece[5] = sum_of(a.size(), [&](size_t i) { return distance(i) * distance(i); });
      piece[6] = sum_of(a.size(), [&](size_t i) { return double{a[i]} * a[i]; });
      join(joined, piece);
    }
    join(whole, joined);
  }
  return whole;
}

Numbers numbers_of(const Format& format, const std::vector<uint8_t>& blocks) {
  const uint64_t n_blocks = blocks.size() / format.block_bytes;
  Numbers x(n_blocks * format.block_elements);
  dequantize(format, Out::kFloat32, Store::kPlain, false, blocks.data(), n_blocks, x.data());
  return x;
}

/** Does work on `threads` threads at once, which must not fail. */
void do_all(ChunkedWork& work, int threads) {
  do_work_on_threads(threads, work);
  ASSERT_FALSE(work.failure()) << work.failure()->detail;
}

StatisticsTask task_of(const Format& format, const std::vector<uint8_t>& blocks) {
  StatisticsTask task;
  task.format = format;
  task.n_blocks = blocks.size() / format.block_bytes;
  return task;
}

Fields measure(const BlockSource& source, const StatisticsTask& task, int threads) {
  const size_t n_bins = task.bins.n;
  Fields result(9 + (n_bins > 0 ? 2 + n_bins + 2 : 0), -1.0);
  ChunkedStatistics statistics(source, task, result.data());
  do_all(statistics, threads);
  return result;
}

Fields compare(const ComparedBlocks& a, const ComparedBlocks& b, uint64_t n_numbers, int threads) {
  ComparisonTask task;
  task.a = a;
  task.b = b;
  task.n_numbers = n_numbers;
  Fields result(7, -1.0);
  ChunkedComparison comparison(task, result.data());
  do_all(comparison, threads);
  return result;
}

/** Equal to the bit, -0 other than 0. */
void expect_same(const Fields& is, const Fields& should_be) {
  ASSERT_EQ(is.size(), should_be.size());
  for (size_t i = 0; i < is.size(); ++i) {
    EXPECT_EQ(std::memcmp(&is[i], &should_be[i], sizeof(double)), 0)
        << "field " << i << ": " << is[i] << ", should be " << should_be[i];
  }
}

std::vector<uint8_t> bytes_of(const Numbers& x) {
  std::vector<uint8_t> bytes(x.size() * sizeof(float));
  if (!x.empty()) std::memcpy(bytes.data(), x.data(), bytes.size());
  return bytes;
}

class ChunkedStatisticsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(use_isa(GetParam())); }
  void TearDown() override { use_isa(available_isas().front()); }
};

INSTANTIATE_TEST_SUITE_P(Isas, ChunkedStatisticsTest, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ChunkedStatisticsTest, FollowTheRuleForEveryFormat) {
  const Format& f32 = format_named("F32");
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    // Any bits: numbers of every size, and some that are not finite.
    const auto blocks = random_blocks(format, (kPiece * 2 + 768) / format.block_elements);
    const Numbers x = numbers_of(format, blocks);
    expect_same(measure(in_memory(blocks), task_of(format, blocks), 1), statistics_by_the_rule(x));

    Numbers y = x;
    for (size_t i = 0; i < y.size(); i += 3) y[i] *= 1.01f;
    const auto other = bytes_of(y);
    const ComparedBlocks a{in_memory(blocks), format}, b{in_memory(other), f32};
    expect_same(compare(a, b, x.size(), 1), comparison_by_the_rule(x, y));
    expect_same(compare(b, a, x.size(), 1), comparison_by_the_rule(y, x));
  }
}

TEST_P(ChunkedStatisticsTest, FollowTheRuleForNumbersOfEveryKind) {
  const Format& f32 = format_named("F32");
  std::mt19937 random(3);
  const auto uniform = [&] { return static_cast<float>(random() % 20001) * 1e-4f - 1; };
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<std::function<float(size_t)>> kinds = {
      [&](size_t) { return uniform(); },
      [&](size_t) { return 1 + uniform(); },
      [&](size_t) { return -2 + uniform(); },
      [&](size_t) { return 1e6f + uniform(); },
      // Squares that are 770 and 1,900 times their distances from the mean: on both sides of the limit.
      [&](size_t) { return 16 + uniform(); },
      [&](size_t) { return 25 + uniform(); },
      [&](size_t) { return -0.1f; },
      [&](size_t i) { return i % 3 == 0 ? 0.0f : -0.0f; },
      [&](size_t i) {
        return i % 5 == 0 ? nan : i % 7 == 0 ? infinity : i % 11 == 0 ? -infinity : uniform();
      },
      [&](size_t i) { return i % 2 == 0 ? nan : infinity; },
      [&](size_t) { return uniform() * 3.4e38f; },
      [&](size_t) { return uniform() * 1e-42f; },
  };
  for (const size_t n : {0, 1, 31, 32, 33, 1000, 4096, 4097, 9999}) {
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      SCOPED_TRACE(std::to_string(n) + " numbers of kind " + std::to_string(kind));
      Numbers x(n), y(n);
      for (size_t i = 0; i < n; ++i) x[i] = kinds[kind](i);
      for (size_t i = 0; i < n; ++i) y[i] = i % 2 == 0 ? x[i] : kinds[kind](i + 1);
      const auto blocks = bytes_of(x), other = bytes_of(y);
      expect_same(measure(in_memory(blocks), task_of(f32, blocks), 1), statistics_by_the_rule(x));
      const ComparedBlocks a{in_memory(blocks), f32}, b{in_memory(other), f32};
      expect_same(compare(a, b, n, 1), comparison_by_the_rule(x, y));
    }
  }
}

TEST_P(ChunkedStatisticsTest, AreTheSameByAnyNumberOfThreadsAndFromFiles) {
  const Format& q4_0 = format_named("Q4_0");
  const Format& q6_k = format_named("Q6_K");
  const size_t n_numbers = 5 * kChunk + kPiece + 256;
  const auto blocks = random_blocks(q4_0, n_numbers / q4_0.block_elements);
  const auto other = random_blocks(q6_k, n_numbers / q6_k.block_elements);
  const Fields statistics = statistics_by_the_rule(numbers_of(q4_0, blocks));
  const Fields comparison = comparison_by_the_rule(numbers_of(q4_0, blocks), numbers_of(q6_k, other));
  const BlockFile file(blocks), other_file(other);
  for (const Access access : {Access::kMap, Access::kRead}) {
    const auto opened = file.open(access), other_opened = other_file.open(access);
    for (const int threads : {1, 4}) {
      const BlockSource source = BlockFile::source(*opened);
      expect_same(measure(source, task_of(q4_0, blocks), threads), statistics);
      const ComparedBlocks a{source, q4_0}, b{BlockFile::source(*other_opened), q6_k};
      expect_same(compare(a, b, n_numbers, threads), comparison);
    }
  }
}

TEST_P(ChunkedStatisticsTest, ContinueAtChunks) {
  const Format& format = format_named("Q8_0");
  const auto blocks = random_blocks(format, 3 * kChunk / format.block_elements);
  StatisticsTask task = task_of(format, blocks);
  task.bins = {-3, 5, 7};
  task.counts_before.assign(9, 0);
  const Fields whole = measure(in_memory(blocks), task, 2);
  task.n_blocks = 2 * kChunk / format.block_elements;
  const Fields first = measure(in_memory(blocks), task, 2);
  task.before = {2 * kChunk,
                 static_cast<uint64_t>(first[1]),
                 static_cast<uint64_t>(first[2]),
                 static_cast<uint64_t>(first[3]),
                 static_cast<uint64_t>(first[4]),
                 first[5],
                 first[6],
                 first[7],
                 first[8]};
  for (size_t i = 0; i < 9; ++i) task.counts_before[i] = static_cast<uint64_t>(first[11 + i]);
  BlockSource rest = in_memory(blocks);
  rest.data += task.n_blocks * format.block_bytes;
  task.n_blocks = kChunk / format.block_elements;
  expect_same(measure(rest, task, 2), whole);
}

TEST_P(ChunkedStatisticsTest, CountWhatIsNotFiniteAlone) {
  for (const char* name : {"F32", "Q4_K", "F64"}) {
    const Format& format = format_named(name);
    const auto blocks = random_blocks(format, (kChunk + 512) / format.block_elements);
    StatisticsTask task = task_of(format, blocks);
    const Fields all = measure(in_memory(blocks), task, 2);
    task.measure = Measure::kFinite;
    Fields result = measure(in_memory(blocks), task, 2);
    EXPECT_EQ(result[4], -1.0);  // not written
    result.resize(4);
    expect_same(result, Fields(all.begin(), all.begin() + 4));
    EXPECT_GT(all[1], 0);
  }
}

// A counter of one thread has 32 bits. The zeros are pages that are never written to.
TEST(ChunkedStatisticsOfMany, CountMoreThan32BitsHold) {
  if (is_slowed_down)
    GTEST_SKIP() << "four thousand million numbers take minutes with a sanitizer or an emulator";
  const Format& format = format_named("TQ1_0");
  StatisticsTask task;
  task.format = format;
  task.n_blocks = ((uint64_t{1} << 32) + kChunk) / format.block_elements;
  task.bins = {0, 1, 1};
  task.counts_before.assign(3, 0);
  const size_t n_bytes = task.n_blocks * format.block_bytes;
  const std::unique_ptr<void, void (*)(void*)> zeros(std::calloc(n_bytes, 1), std::free);
  if (zeros == nullptr) GTEST_SKIP() << "there is no memory for " << n_bytes << " bytes";
  BlockSource source;
  source.data = static_cast<const uint8_t*>(zeros.get());
  Fields result(9 + 2 + 3);
  ChunkedStatistics statistics(source, task, result.data());
  do_work(statistics);
  EXPECT_EQ(result[11], static_cast<double>(task.n_elements()));
}

TEST(ChunkedStatisticsOfFiles, FailWhereTheFileWasCutOff) {
  const Format& format = format_named("F32");
  const auto blocks = random_blocks(format, kChunk);
  for (const Access access : {Access::kMap, Access::kRead}) {
    if (access == Access::kMap && !kMappedReadsNeverFault) continue;
    const BlockFile file(blocks);
    const auto opened = file.open(access);
    file.truncate(kChunk);
    Fields result(9);
    ChunkedStatistics statistics(BlockFile::source(*opened), task_of(format, blocks), result.data());
    do_work(statistics);
    ASSERT_TRUE(statistics.failure());
    EXPECT_EQ(statistics.failure()->code, ErrorCode::kTruncated);
  }
}

TEST(Totals, HaveCountsUpToTwoToThe53rd) {
  constexpr double kMost = 9007199254740992;
  for (const size_t n : {StatisticsTotals::kFiniteFields, StatisticsTotals::kFields}) {
    Fields fields(n, 0.0);
    fields[0] = kMost;
    const auto most = StatisticsTotals::read(fields.data(), n);
    ASSERT_TRUE(most.ok());
    EXPECT_EQ(most.value().statistics.count, uint64_t{1} << 53);
    fields[0] = kMost + 2;
    EXPECT_FALSE(StatisticsTotals::read(fields.data(), n).ok());
  }
  Fields fields(ComparisonTotals::kFields, 0.0);
  fields[1] = kMost;
  ASSERT_TRUE(ComparisonTotals::read(fields.data(), fields.size()).ok());
  fields[1] = kMost + 2;
  EXPECT_FALSE(ComparisonTotals::read(fields.data(), fields.size()).ok());
}

TEST(ChunkedComparisonTest, WaitsForWhatIsNotThereOfEither) {
  const Format floats = format_named("F32"), small = format_named("Q8_0");
  constexpr uint64_t kChunks = 4, kNumbers = kChunks * kChunk;
  const auto a = random_blocks(floats, kNumbers), b = random_blocks(small, kNumbers / small.block_elements);
  const ComparedBlocks side_a{in_memory(a), floats}, side_b{in_memory(b), small};
  const Fields expected = compare(side_a, side_b, kNumbers, 1),
               swapped = compare(side_b, side_a, kNumbers, 1);
  for (const bool swap : {false, true}) {
    ComparisonTask task{swap ? side_b : side_a, swap ? side_a : side_b, kNumbers, {}};
    Fields result(7);
    ChunkedComparison comparison(task, result.data());
    const auto work_with = [&](uint64_t of_a, uint64_t of_b) {
      std::vector<uint8_t> scratch;
      const uint64_t bytes_of_a = a.size() / kChunks * of_a, bytes_of_b = b.size() / kChunks * of_b;
      comparison.set_ready_bytes(swap ? bytes_of_b : bytes_of_a, swap ? bytes_of_a : bytes_of_b);
      comparison.work(scratch, [] { return false; });
      return comparison.done_elements() / kChunk;
    };
    EXPECT_EQ(work_with(2, 1), 1u);
    EXPECT_EQ(work_with(2, 4), 2u);
    EXPECT_EQ(work_with(4, 3), 3u);
    EXPECT_FALSE(comparison.is_exhausted());
    EXPECT_EQ(work_with(4, 4), 4u);
    EXPECT_FALSE(comparison.failure());
    expect_same(result, swap ? swapped : expected);
  }
}

TEST(ChunkedComparisonTest, NamesTheFileThatWasCutOff) {
  const Format& format = format_named("F32");
  const auto blocks = random_blocks(format, kChunk);
  const BlockFile whole(blocks);
  for (const Access access : {Access::kMap, Access::kRead}) {
    if (access == Access::kMap && !kMappedReadsNeverFault) continue;
    const BlockFile again(blocks);
    const auto a = whole.open(access), b = again.open(access);
    again.truncate(kChunk);
    for (const bool second : {false, true}) {
      ComparisonTask task;
      task.a = {BlockFile::source(second ? *a : *b), format};
      task.b = {BlockFile::source(second ? *b : *a), format};
      task.n_numbers = kChunk;
      Fields result(7);
      ChunkedComparison comparison(task, result.data());
      do_work(comparison);
      ASSERT_TRUE(comparison.failure());
      EXPECT_EQ(comparison.failure()->code, ErrorCode::kTruncated);
      EXPECT_EQ(comparison.failure()->of_other, second);
    }
  }
}

}  // namespace
}  // namespace gguf::test
