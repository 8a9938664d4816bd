#include "dequant/bins.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dequant/isa/kernel_table.h"

namespace gguf {
namespace {

constexpr size_t kTables = 4;
/** With larger tables than this one table is faster than four. */
constexpr uint32_t kMaxShortTable = 4096;

/** Numbers whose bins are found before they are counted: they stay in the first-level cache, beside tables.
 */
constexpr size_t kFoundAtOnce = 512;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/** The smallest binary32 number that is not less than x. */
float rounded_up(double x) {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) < x ? std::nextafter(rounded, kInfinity) : rounded;
}

}  // namespace

BinRange::BinRange(const Bins& bins)
    : low(bins.low),
      scale(bins.high > bins.low ? bins.n / (bins.high - bins.low) : 0),
      last(static_cast<double>(bins.n) - 1),
      smallest(rounded_up(bins.low)),
      greatest(-rounded_up(-bins.high)),
      below(bins.n),
      above(bins.n + 1) {}

BinCounter::BinCounter(const Bins& bins)
    : range_(bins),
      n_slots_(size_t{bins.n} + 2),
      stride_(bins.n <= kMaxShortTable ? n_slots_ : 0),
      tables_(stride_ == 0 ? n_slots_ : kTables * n_slots_) {}

void BinCounter::count(const float* x, size_t n) {
  const BinFinder find_bins = active_kernels().find_bins;
  uint32_t* const tables = tables_.data();
  uint32_t bins[kFoundAtOnce];
  n_counted_ += n;
  for (size_t n_found; n > 0; x += n_found, n -= n_found) {
    n_found = std::min(n, kFoundAtOnce);
    find_bins(x, n_found, range_, bins);
    size_t i = 0;
    for (; i + kTables <= n_found; i += kTables) {
      ++tables[bins[i]];
      ++tables[stride_ + bins[i + 1]];
      ++tables[2 * stride_ + bins[i + 2]];
      ++tables[3 * stride_ + bins[i + 3]];
    }
    for (; i < n_found; ++i) ++tables[bins[i]];
  }
}

void BinCounter::add_to(Histogram& histogram) {
  for (size_t i = 0; i < tables_.size(); ++i) histogram.counts[i % n_slots_] += tables_[i];
  std::fill(tables_.begin(), tables_.end(), 0);
  n_counted_ = 0;
}

}  // namespace gguf
