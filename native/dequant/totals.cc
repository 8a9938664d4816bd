#include "dequant/totals.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace gguf {

namespace {

/** After the fields: the range of the histogram. Then come the counts of its bins, below and above. */
constexpr size_t kLow = StatisticsTotals::kFields, kHigh = kLow + 1, kCounts = kHigh + 1;

Error bad_totals(const std::string& what) {
  return {ErrorCode::kRange, what};
}

Error bad_length(size_t n) {
  return bad_totals("totals has " + std::to_string(n) + " elements");
}

/** Reads counts; remembers if one is not a whole number from 0 to 2^53. */
class Counts {
 public:
  explicit Counts(const double* fields) : fields_(fields) {}

  uint64_t operator[](size_t field) {
    constexpr double kMaxExact = 9007199254740992;
    const double number = fields_[field];
    if (number >= 0 && number <= kMaxExact && std::floor(number) == number)
      return static_cast<uint64_t>(number);
    are_good_ = false;
    return 0;
  }
  bool are_good() const { return are_good_; }
  static Error error() { return bad_totals("totals has a count that is not a whole number"); }

 private:
  const double* const fields_;
  bool are_good_ = true;
};

}  // namespace

Result<StatisticsTotals> StatisticsTotals::read(const double* fields, size_t n) {
  if (n < kFiniteFields) return bad_length(n);
  if (n > kMaxFields) return bad_totals("totals is too long");
  if (n > kFiniteFields && n < kFields) return bad_totals("totals lacks fields");
  constexpr size_t kLeastWithBins = kCounts + 1 + 2;
  if (n > kFields && n < kLeastWithBins) return bad_totals("totals has no bins");
  Counts counts(fields);
  StatisticsTotals totals;
  Statistics& statistics = totals.statistics;
  statistics.count = counts[0];
  statistics.nan = counts[1];
  statistics.positive_infinity = counts[2];
  statistics.negative_infinity = counts[3];
  if (statistics.nan + statistics.positive_infinity + statistics.negative_infinity > statistics.count) {
    return bad_totals("totals has more numbers that are not finite than numbers");
  }
  if (n == kFiniteFields) {
    totals.measure = Measure::kFinite;
  } else {
    statistics.zeros = counts[4];
    statistics.min = fields[5];
    statistics.max = fields[6];
    statistics.mean = fields[7];
    statistics.m2 = fields[8];
  }
  if (n > kFields) {
    const double low = fields[kLow], high = fields[kHigh];
    if (!(low <= high) || !std::isfinite(high - low)) {
      return bad_totals("the range of the histogram must be two finite numbers, the lower one first");
    }
    totals.bins = {low, high, static_cast<uint32_t>(n - kCounts - 2)};
    totals.counts.resize(n - kCounts);
    for (size_t i = 0; i < totals.counts.size(); ++i) totals.counts[i] = counts[kCounts + i];
  }
  if (!counts.are_good()) return Counts::error();
  return totals;
}

void StatisticsTotals::write(double* fields) const {
  const double all[kFields] = {
      static_cast<double>(statistics.count),
      static_cast<double>(statistics.nan),
      static_cast<double>(statistics.positive_infinity),
      static_cast<double>(statistics.negative_infinity),
      static_cast<double>(statistics.zeros),
      statistics.min,
      statistics.max,
      statistics.mean,
      statistics.m2,
  };
  std::copy_n(all, measure == Measure::kFinite ? kFiniteFields : kFields, fields);
  if (bins.n == 0) return;
  fields[kLow] = bins.low;
  fields[kHigh] = bins.high;
  std::transform(counts.begin(), counts.end(), fields + kCounts,
                 [](uint64_t count) { return static_cast<double>(count); });
}

Result<ComparisonTotals> ComparisonTotals::read(const double* fields, size_t n) {
  if (n != kFields) return bad_length(n);
  Counts counts(fields);
  ComparisonTotals totals;
  Comparison& comparison = totals.comparison;
  comparison.count = counts[0];
  comparison.different = counts[1];
  comparison.incomparable = counts[2];
  comparison.max_error = fields[3];
  comparison.sum_errors = fields[4];
  comparison.sum_squares = fields[5];
  comparison.signal = fields[6];
  if (!counts.are_good()) return Counts::error();
  return totals;
}

void ComparisonTotals::write(double* fields) const {
  const double all[kFields] = {
      static_cast<double>(comparison.count),
      static_cast<double>(comparison.different),
      static_cast<double>(comparison.incomparable),
      comparison.max_error,
      comparison.sum_errors,
      comparison.sum_squares,
      comparison.signal,
  };
  std::copy(std::begin(all), std::end(all), fields);
}

}  // namespace gguf
