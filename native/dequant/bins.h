// Histograms: how many numbers are in each of some equal parts of a range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gguf {

/** Equal parts of a range. A number x of the range is in part (x - low) * (n / (high - low)), rounded down,
 * or in the last one: all computed in binary64. If high is low, that is part 0. */
struct Bins {
  double low = 0, high = 0;
  uint32_t n = 0;  // 0: no histogram
};

/** Most bins of a histogram. */
constexpr uint32_t kMaxBins = 65536;

/** How many finite numbers are in each bin, and below and above all. */
struct Histogram {
  std::vector<uint64_t> counts;  // of the bins, then below, then above

  explicit Histogram(uint32_t n_bins) : counts(size_t{n_bins} + 2) {}
};

/** Bins in the form in which an instruction set finds that of a number. */
struct BinRange {
  explicit BinRange(const Bins& bins);

  double low, scale;         // the bin is the whole part of (number - low) * scale,
  double last;               // or this one
  float smallest, greatest;  // of the numbers of the range: all between them have a bin
  uint32_t below, above;     // what other numbers get
};

/** Counts numbers in the bins of a histogram. */
class BinCounter {
 public:
  /** Throws bad_alloc. */
  explicit BinCounter(const Bins& bins);
  /** At most 2^32 - 1 numbers before add_to. None is a NaN. */
  void count(const float* x, size_t n);
  /** How many were counted since add_to. */
  uint64_t n_counted() const { return n_counted_; }
  /** Adds what was counted, and counts from 0 again. */
  void add_to(Histogram& histogram);

 private:
  BinRange range_;
  size_t n_slots_;
  size_t stride_;  // from table to table
  uint64_t n_counted_ = 0;
  std::vector<uint32_t>
      tables_;  // kTables: successive numbers, which are often in the same bin, go to different ones
};

}  // namespace gguf
