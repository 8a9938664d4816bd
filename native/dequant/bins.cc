#include "dequant/bins.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "dequant/isa/kernel_table.h"

namespace gguf {
namespace {

constexpr size_t kTables = 4;
/** With larger tables than this one table is faster than four. */
constexpr uint32_t kMaxShortTable = 4096;

/** With more bins, the counters of pairs do not stay in the caches of a core. */
constexpr uint32_t kMaxPairedBins = 256;
/** For each counter of a pair: with fewer numbers, what its memory costs is more than it saves. */
constexpr uint64_t kNumbersPerPair = 64;

/** Guesses leave no more than this part of a bin undecided: then most registers of numbers have none there.
 */
constexpr double kMostUndecided = 1.0 / 64;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/** The smallest binary32 number that is not less than x. */
float rounded_up(double x) {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) < x ? std::nextafter(rounded, kInfinity) : rounded;
}

/** Adds 1 to the counter of each of n indexes, in tables that are `stride` apart, in turn. */
void count_found(const uint32_t* found, size_t n, uint32_t* tables, size_t stride) {
  // Two indexes to a load, in whatever order: loads and stores are what this waits for.
  const auto two_of = [](const uint32_t* at) {
    uint64_t two;
    std::memcpy(&two, at, sizeof two);
    return two;
  };
  size_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    const uint64_t a = two_of(found + i), b = two_of(found + i + 2);
    ++tables[static_cast<uint32_t>(a)];
    ++tables[stride + (a >> 32)];
    ++tables[2 * stride + static_cast<uint32_t>(b)];
    ++tables[3 * stride + (b >> 32)];
  }
  for (; i < n; ++i) ++tables[found[i]];
}

}  // namespace

BinRange::BinRange(const Bins& bins)
    : low(bins.low),
      scale(bins.high > bins.low ? bins.n / (bins.high - bins.low) : 0),
      last(static_cast<double>(bins.n) - 1),
      smallest(rounded_up(bins.low)),
      greatest(-rounded_up(-bins.high)),
      n_slots(bins.n + 2),
      guess(best_guess()) {}

SlotGuess BinRange::best_guess() const {
  SlotGuess best;
  // All slots are less than 2^30 in fixed point, which a conversion to integers may round down.
  int bits = 0;
  std::frexp(static_cast<double>(n_slots), &bits);
  const int point = 30 - bits;
  const double one = std::ldexp(1.0, point);
  // The factor, the term and their sum are rounded to 24 bits. Of the numbers that matter, which have a slot
  // or are less than one beside them, products are at most offset + n_slots. The rest is more than what
  // binary64 rounds.
  const double offset = std::fabs(low * scale);
  const double error = std::ldexp((2 * offset + 2.0 * n_slots + 8) * one, -24);
  if (!(error <= kMostUndecided / 4 * one)) return best;
  int margin_bits = 0;
  std::frexp(std::max(error, 0.5), &margin_bits);
  const double margin = std::ldexp(1.0, margin_bits);  // up to twice the error
  best.factor = static_cast<float>(scale * one);
  if (!std::isnormal(best.factor)) return best;
  best.term = static_cast<float>((1 - low * scale) * one + margin);
  best.least = static_cast<float>(one / 2);
  best.most = static_cast<float>((n_slots - 0.5) * one);
  best.point = static_cast<uint32_t>(point);
  best.decided = static_cast<uint32_t>(one - 2 * margin);  // the upper ones of the bits after the point
  const auto guess_of_0 = static_cast<uint32_t>(std::max(best.least, std::min(best.most, best.term)));
  best.sure = guess_of_0 >> point == slot_of(0) ? 0 : std::numeric_limits<float>::quiet_NaN();
  best.is_useful = true;
  return best;
}

BinCounter::BinCounter(const Bins& bins, uint64_t n_numbers)
    : range_(bins), stride_(bins.n <= kMaxShortTable ? range_.n_slots : 0) {
  const size_t n_slots = range_.n_slots;
  if (bins.n <= kMaxPairedBins && n_numbers / kNumbersPerPair >= n_slots * n_slots) {
    pairs_.resize(n_slots * n_slots);
  }
  tables_.resize(stride_ == 0 ? n_slots : kTables * n_slots);
}

void BinCounter::count(const float* x, size_t n) {
  const KernelTable& kernels = active_kernels();
  uint32_t found[kSlotsAtOnce];
  n_counted_ += n;
  for (size_t n_found; n > 0; x += n_found, n -= n_found) {
    n_found = std::min(n, kSlotsAtOnce);
    if (!pairs_.empty() && n_found % 2 == 0) {
      kernels.find_slot_pairs(x, n_found / 2, range_, found);
      count_found(found, n_found / 2, pairs_.data(), 0);
    } else {
      kernels.find_slots(x, n_found, range_, found);
      count_found(found, n_found, tables_.data(), stride_);
    }
  }
}

void BinCounter::add_to(Histogram& histogram) {
  const size_t n_slots = range_.n_slots;
  // First to a table of single slots: there are too few numbers for its counters to overflow.
  uint32_t* const table = tables_.data();
  for (size_t a = 0; a * n_slots < pairs_.size(); ++a) {
    const uint32_t* const row = pairs_.data() + a * n_slots;
    uint32_t total = 0;
    for (size_t b = 0; b < n_slots; ++b) {
      total += row[b];
      table[b] += row[b];
    }
    table[a] += total;
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    const size_t slot = i % n_slots;
    const size_t bin = slot == 0 ? n_slots - 2 : slot == n_slots - 1 ? slot : slot - 1;
    histogram.counts[bin] += tables_[i];
  }
  std::fill(pairs_.begin(), pairs_.end(), 0);
  std::fill(tables_.begin(), tables_.end(), 0);
  n_counted_ = 0;
}

}  // namespace gguf
