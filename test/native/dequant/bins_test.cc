// Histograms: every number in the bin of the rule in bins.h, which is written down here a second time, on
// every instruction set, whether numbers are counted one by one or in pairs.
#include "dequant/bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "dequant/dequant.h"

namespace gguf::test {
namespace {

using Numbers = std::vector<float>;
using Counts = std::vector<uint64_t>;

constexpr uint64_t kFew = 0,
                   kMany = UINT64_MAX;  // numbers that a counter is for: the latter are counted in pairs

Counts counts_by_the_rule(const Numbers& x, const Bins& bins) {
  Counts counts(size_t{bins.n} + 2);
  const double scale = bins.high > bins.low ? bins.n / (bins.high - bins.low) : 0;
  for (const float number : x) {
    const double part = (number - bins.low) * scale;
    const double bin = std::isnan(part) ? 0 : std::min(bins.n - 1.0, std::floor(part));
    ++counts[number < bins.low ? bins.n : number > bins.high ? bins.n + 1 : static_cast<size_t>(bin)];
  }
  return counts;
}

/** Counts `x` in parts of many lengths. */
Counts counts_of(const Numbers& x, const Bins& bins, uint64_t n_numbers) {
  BinCounter counter(bins, n_numbers);
  Histogram histogram(bins.n);
  constexpr size_t kLengths[] = {1, 2, 7, 15, 16, 17, 31, 33, 64, 1000, 1023, 1024, 1025, 4096};
  size_t at = 0;
  for (size_t part = 0; at < x.size(); ++part) {
    const size_t n = std::min(x.size() - at, kLengths[part % std::size(kLengths)]);
    counter.count(x.data() + at, n);
    at += n;
  }
  counter.add_to(histogram);
  return histogram.counts;
}

/** Numbers on the edges of some bins and next to these, of every size, and all over the range and beside it.
 */
Numbers hard_numbers(const Bins& bins, std::mt19937& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  Numbers x = {0, -0.0f, 1e-45f, -1e-45f, 1e-30f, -1e-30f, 1e-9f, -1e-9f, 1, -1, kMost, -kMost};
  const double width = bins.high - bins.low;
  for (int i = 0; i < 200; ++i) {
    const uint32_t edge = i == 0 ? 0 : i == 1 ? bins.n : i == 2 ? bins.n / 2 : random() % (bins.n + 1);
    const auto number = static_cast<float>(bins.low + edge * (width / bins.n));
    if (!std::isfinite(number)) continue;
    x.push_back(number);
    for (const float direction : {-kInfinity, kInfinity}) {
      float next = number;
      for (int step = 0; step < 6; ++step) {
        next = std::nextafter(next, direction);
        if (std::isfinite(next)) x.push_back(next);
      }
    }
  }
  for (int i = 0; i < 3000; ++i) {
    const auto number = static_cast<float>(bins.low + width * (random() % 1000001 * 3e-6 - 1));
    if (std::isfinite(number)) x.push_back(number);
  }
  std::shuffle(x.begin(), x.end(), random);
  return x;
}

class BinCounterTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(use_isa(GetParam())); }
  void TearDown() override { use_isa(available_isas().front()); }

  static void expect_the_rule(const Bins& bins, const Numbers& x) {
    const Counts expected = counts_by_the_rule(x, bins);
    for (const uint64_t n_numbers : {kFew, kMany}) {
      EXPECT_EQ(counts_of(x, bins, n_numbers), expected)
          << bins.n << " bins from " << bins.low << " to " << bins.high << ", for " << n_numbers;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, BinCounterTest, testing::ValuesIn(available_isas()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(BinCounterTest, FollowsTheRuleInRangesOfEveryKind) {
  std::mt19937 random(1);
  for (const Bins bins :
       {Bins{-4, 4, 256}, Bins{-0.1, 0.1, 256}, Bins{-0.1, 0.1, 20}, Bins{-127, 127, 254}, Bins{0, 255, 255},
        Bins{-1, 1, 1}, Bins{3, 3, 4}, Bins{0, 0, 256}, Bins{1000, 1001, 256}, Bins{1e9, 1e9 + 1e3, 7},
        Bins{-3e38, 3e38, 256}, Bins{-1e300, 1e300, 256}, Bins{0, 1e-28, 256}, Bins{0, 1e-30, 256},
        Bins{-1e-44, 1e-44, 256}, Bins{0, 1e-310, 7}, Bins{-1e-310, 0, 256}, Bins{-1e-310, 1e-310, 65536},
        Bins{-5e-324, 5e-324, 8}}) {
    expect_the_rule(bins, hard_numbers(bins, random));
  }
}

TEST_P(BinCounterTest, FollowsTheRuleInRandomRanges) {
  std::mt19937 random(2);
  const auto uniform = [&] { return random() % 1000001 * 2e-6 - 1; };
  constexpr uint32_t kBins[] = {1, 2, 3, 20, 100, 255, 256, 257, 1000, 4096, 4097, 20000, 65536};
  int n_guessed = 0, n_without_0 = 0;
  for (int i = 0; i < 260; ++i) {
    const uint32_t n = kBins[i % std::size(kBins)];
    const double size = std::pow(10.0, static_cast<int>(random() % 13) - 6);
    const double a = uniform() * size, b = random() % 2 == 0 ? -a : uniform() * size;
    const Bins bins{std::min(a, b), std::max(a, b), n};
    const SlotGuess guess = BinRange(bins).guess;
    n_guessed += guess.is_useful;
    n_without_0 += guess.is_useful && std::isnan(guess.sure);
    expect_the_rule(bins, hard_numbers(bins, random));
  }
  EXPECT_GT(n_guessed, 150);
  EXPECT_GT(n_without_0, 0);
}

TEST_P(BinCounterTest, FollowsTheRuleWhereEveryNumberIsOnAnEdge) {
  Numbers x(5000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 301) - 150;
  for (const uint32_t n : {32, 128, 256}) expect_the_rule({-128, 128, n}, x);
  expect_the_rule({0, 1, 256}, Numbers(5000, 0.0f));
}

TEST_P(BinCounterTest, AddsWhatItCountedOnce) {
  const Numbers x = {-1, 0, 0.5f, 3, 4, 5, 6, 2};
  for (const uint64_t n_numbers : {kFew, kMany}) {
    BinCounter counter({0, 4, 4}, n_numbers);
    Histogram histogram(4);
    for (const size_t n : {x.size(), size_t{3}}) {
      counter.count(x.data(), n);
      EXPECT_EQ(counter.n_counted(), n);
      counter.add_to(histogram);
      EXPECT_EQ(counter.n_counted(), 0u);
    }
    EXPECT_EQ(histogram.counts, (Counts{4, 0, 1, 2, 2, 2}));
  }
}

TEST(BinRange, GuessesWhereBinary32IsExactEnough) {
  for (const Bins bins : {Bins{-1, 1, 1}, Bins{-1, 1, 256}, Bins{-0.1, 0.1, 4096}, Bins{-3e38, 3e38, 256},
                          Bins{2, 3, 256}, Bins{0, 1e-28, 256}}) {
    EXPECT_TRUE(BinRange(bins).guess.is_useful) << bins.low << " to " << bins.high << ", " << bins.n;
  }
  EXPECT_EQ(BinRange({-4, 4, 256}).guess.sure, 0);  // on an edge
  for (const Bins bins : {Bins{-1, 1, 65536}, Bins{1e4, 1e4 + 1, 256}, Bins{0, 0, 256},
                          Bins{-1e300, 1e300, 256}, Bins{0, 1e-310, 256}}) {
    EXPECT_FALSE(BinRange(bins).guess.is_useful) << bins.low << " to " << bins.high << ", " << bins.n;
  }
}

}  // namespace
}  // namespace gguf::test
