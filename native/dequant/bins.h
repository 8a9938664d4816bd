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

/**
 * Finds the slots of nearly all numbers in binary32: max(least, min(most, number * factor + term)), whose
 * product is not rounded, is the slot in fixed point, and a margin more. That is larger than the error. So
 * the slot is right, unless the bits `decided` are all 0: then the number may belong below the lower edge of
 * that slot.
 */
struct SlotGuess {
  bool is_useful = false;  // else the rest means nothing: too many numbers are too near an edge
  float factor = 0, term = 0, least = 0, most = 0;
  uint32_t point = 0;  // bits after the point
  uint32_t decided = 0;
  float sure = 0;  // its slot is right in any case: 0, which many weights are and is often an edge, or NaN
};

/** Bins in the form in which an instruction set finds those of numbers. A number is counted in a slot: 0
 * below all bins, 1 + its bin, or the last one above. */
struct BinRange {
  explicit BinRange(const Bins& bins);

  double low, scale;         // the bin is the whole part of (number - low) * scale,
  double last;               // or this one
  float smallest, greatest;  // of the numbers of the range: all between them have a bin
  uint32_t n_slots;
  SlotGuess guess;

  /** That of a number, which is no NaN: what every instruction set finds. */
  uint32_t slot_of(float number) const {
    if (number < smallest) return 0;
    if (number > greatest) return n_slots - 1;
    double part = (static_cast<double>(number) - low) * scale;
    part = part > 0 ? part : 0;  // also where it is not a number: 0 times a scale that is infinite
    part = part < last ? part : last;
    return 1 + static_cast<uint32_t>(part);
  }

 private:
  SlotGuess best_guess() const;
};

/**
 * Counts numbers in the bins of a histogram. To add 1 to a counter takes longer than to find it. So where a
 * histogram of many numbers has few bins, there is a counter for each pair of slots, and two numbers are
 * counted at a time.
 */
class BinCounter {
 public:
  /** For about n_numbers numbers: only the speed depends on that. Throws bad_alloc. */
  BinCounter(const Bins& bins, uint64_t n_numbers);
  /** At most 2^32 - 1 numbers before add_to. None is a NaN. */
  void count(const float* x, size_t n);
  /** How many were counted since add_to. */
  uint64_t n_counted() const { return n_counted_; }
  /** Adds what was counted, and counts from 0 again. */
  void add_to(Histogram& histogram);

 private:
  BinRange range_;
  size_t stride_;  // from table to table
  uint64_t n_counted_ = 0;
  std::vector<uint32_t> pairs_;  // of slots a and b: counter a * n_slots + b. Empty without them
  std::vector<uint32_t>
      tables_;  // kTables: successive numbers, which are often in one slot, go to different ones
};

}  // namespace gguf
