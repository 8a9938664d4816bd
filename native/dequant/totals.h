// Totals of statistics and comparisons as JavaScript keeps them: arrays of numbers, which later results are
// joined to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.h"
#include "dequant/comparison.h"
#include "dequant/statistics.h"

namespace gguf {

/**
 * Of statistics: count, NaN, +infinity, -infinity; then, unless only these are measured, zeros, min, max,
 * mean, m2; then, if there is a histogram, low, high, the counts of its bins, below and above.
 */
struct StatisticsTotals {
  static constexpr size_t kFiniteFields = 4, kFields = 9, kMaxFields = kFields + 2 + kMaxBins + 2;

  Measure measure = Measure::kAll;
  Statistics statistics;
  Bins bins;
  std::vector<uint64_t> counts;  // of the bins, then below, then above; empty without bins

  /** kRange for what cannot be totals. */
  static Result<StatisticsTotals> read(const double* fields, size_t n);
  /** Writes as many fields as were read. */
  void write(double* fields) const;
};

/** Of a comparison: count, different, incomparable, largest error, sum of errors, of their squares, of the
 * squares of a.
 */
struct ComparisonTotals {
  static constexpr size_t kFields = 7;

  Comparison comparison;

  static Result<ComparisonTotals> read(const double* fields, size_t n);
  void write(double* fields) const;
};

}  // namespace gguf
