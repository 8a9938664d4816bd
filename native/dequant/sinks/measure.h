// What numbers in the first-level cache add up to: the rules of statistics.h and comparison.h, in the
// registers of an instruction set.
//
// A register of numbers is kLanes of the kSums partial sums. A pass takes from every kSums numbers those that
// belong to its partial sums, as in a tile (tile.h): so that they stay in registers.
#pragma once

#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/kernel.h"
#include "dequant/partial_sums.h"

namespace gguf {
namespace {

/** Registers of numbers that belong to all partial sums. */
constexpr int kSumRegisters = static_cast<int>(kSums) / simd::kLanes;

inline PartialSums stored(const simd::Doubles (&sums)[kSumRegisters]) {
  PartialSums stored;
  for (int r = 0; r < kSumRegisters; ++r) simd::store_doubles(stored.x + r * simd::kLanes, sums[r]);
  return stored;
}

/** As an integer, less than all others. */
inline simd::Lanes lowest_lanes() {
  alignas(64) float lowest[simd::kLanes];
  for (float& number : lowest) number = -0.0f;
  return simd::load_lanes(lowest);
}

/**
 * What numbers add up to so far. Their range is found among their bits: as signed integers, the largest are
 * those of the largest number, unless all numbers have a sign; as unsigned ones, those of the smallest, if
 * any has a sign.
 */
struct MomentSums {
  simd::Doubles sums[kSumRegisters] = {}, squares[kSumRegisters] = {};
  simd::Lanes largest = lowest_lanes(), most_bits{};
  simd::Counts zeros{};

  /** Adds the numbers from `x` to `end`: a multiple of kSums. */
  GGUF_INLINE void add(const float* x, const float* end) {
    // Two registers of numbers in a pass, with four of sums each. What has no order, the range and the zeros,
    // has one register for both: with AVX2 there are no more.
    simd::Lanes high = largest, most = most_bits;
    simd::Counts n_zeros = zeros;
    for (int r = 0; r < kSumRegisters; r += 2) {
      simd::Doubles sum[2] = {sums[r], sums[r + 1]}, square[2] = {squares[r], squares[r + 1]};
      for (const float* p = x + r * simd::kLanes; p < end; p += kSums) {
        const simd::Lanes a = simd::load_lanes(p), b = simd::load_lanes(p + simd::kLanes), zero{};
        high = simd::max_signed(simd::max_signed(a, b), high);
        most = simd::max_unsigned(simd::max_unsigned(a, b), most);
        n_zeros = simd::count_equal(b, zero, simd::count_equal(a, zero, n_zeros));
        GGUF_UNROLL
        for (int g = 0; g < 2; ++g) {
          const simd::Doubles wide = simd::load_doubles(p + g * simd::kLanes);
          sum[g] = simd::add(wide, sum[g]);
          square[g] = simd::add_square(wide, square[g]);
        }
      }
      GGUF_UNROLL
      for (int g = 0; g < 2; ++g) {
        sums[r + g] = sum[g];
        squares[r + g] = square[g];
      }
    }
    largest = high;
    most_bits = most;
    zeros = n_zeros;
  }
};

/** The smallest of numbers without a sign, or the largest of numbers that all have one: the smallest bits. */
GGUF_NOINLINE inline float least_bits(const float* x, size_t n) {
  uint32_t least = UINT32_MAX;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = bits_of_float(x[i]);
    least = bits < least ? bits : least;
  }
  return float_of_bits(least);
}

/** What the n numbers at `x` add up to. `sums` has all but the last n_last, which are fewer than kSums. */
GGUF_INLINE Moments moments_of(const MomentSums& sums, const float* x, size_t n, size_t n_last) {
  PartialSums sum = stored(sums.sums), square = stored(sums.squares);
  alignas(64) float largest[simd::kLanes], most_bits[simd::kLanes];
  simd::store_lanes(largest, sums.largest);
  simd::store_lanes(most_bits, sums.most_bits);
  int32_t high = INT32_MIN;
  uint32_t most = 0;
  const auto take_high = [&](float number) {
    const auto bits = static_cast<int32_t>(bits_of_float(number));
    high = bits > high ? bits : high;
  };
  const auto take_most = [&](float number) {
    const uint32_t bits = bits_of_float(number);
    most = bits > most ? bits : most;
  };
  for (const float number : largest) take_high(number);
  for (const float number : most_bits) take_most(number);
  Moments m{};
  m.zeros = simd::total(sums.zeros);
  for (size_t i = 0; i < n_last; ++i) {
    const float number = x[n - n_last + i];
    const double wide = static_cast<double>(number);
    sum.x[i] += wide;
    square.x[i] += wide * wide;
    take_high(number);
    take_most(number);
    m.zeros += number == 0;
  }
  m.sum = sum.total();
  m.squares = square.total();
  m.max = high >= 0 ? float_of_bits(static_cast<uint32_t>(high)) : least_bits(x, n);
  m.min = most > INT32_MAX ? float_of_bits(most) : least_bits(x, n);
  return m;
}

/** A Measurer of kernel_table.h. */
inline Moments measure(const float* x, size_t n) {
  const size_t n_last = n % kSums;
  MomentSums sums;
  sums.add(x, x + n - n_last);
  return moments_of(sums, x, n, n_last);
}

/** A FiniteTest of kernel_table.h: a number times 0 is 0, or NaN where it is not finite, and so is a sum of
 * these. */
inline bool all_finite(const float* x, size_t n) {
  constexpr size_t kAtOnce = 64;
  constexpr int kRegisters = 4;
  simd::Floats16 sum[kRegisters] = {};
  size_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    GGUF_UNROLL
    for (int r = 0; r < kRegisters; ++r) {
      sum[r] = simd::add(sum[r], simd::mul(simd::load_f32(x + i + 16 * r), 0));
    }
  }
  float total = simd::sum(simd::add(simd::add(sum[0], sum[1]), simd::add(sum[2], sum[3])));
  for (; i < n; ++i) total += x[i] * 0;
  return total == 0;
}

/** A PairMeasurer of kernel_table.h. */
inline Distances measure_pair(const float* a, const float* b, size_t n) {
  const size_t n_last = n % kSums, n_whole = n - n_last;
  constexpr int kAtOnce = simd::kPairRegisters;  // of pairs in a pass, with four of sums each
  static_assert(kSumRegisters % kAtOnce == 0, "each pass has as many");
  simd::Doubles sums[kSumRegisters] = {}, squares[kSumRegisters] = {}, signals[kSumRegisters] = {},
                largest[kSumRegisters] = {};
  simd::Counts equal{};
  for (int r = 0; r < kSumRegisters; r += kAtOnce) {
    simd::Doubles sum[kAtOnce] = {}, square[kAtOnce] = {}, signal[kAtOnce] = {}, most[kAtOnce] = {};
    for (size_t at = static_cast<size_t>(r) * simd::kLanes; at < n_whole; at += kSums) {
      GGUF_UNROLL
      for (int g = 0; g < kAtOnce; ++g) {
        const float *of_a = a + at + g * simd::kLanes, *of_b = b + at + g * simd::kLanes;
        equal = simd::count_equal(simd::load_lanes(of_a), simd::load_lanes(of_b), equal);
        const simd::Doubles number = simd::load_doubles(of_a);
        const simd::Doubles distance = simd::magnitude(simd::sub(number, simd::load_doubles(of_b)));
        sum[g] = simd::add(distance, sum[g]);
        square[g] = simd::add_rounded_square(distance, square[g]);
        most[g] = simd::max(distance, most[g]);
        signal[g] = simd::add_square(number, signal[g]);
      }
    }
    GGUF_UNROLL
    for (int g = 0; g < kAtOnce; ++g) {
      sums[r + g] = sum[g];
      squares[r + g] = square[g];
      signals[r + g] = signal[g];
      largest[r + g] = most[g];
    }
  }
  PartialSums sum = stored(sums), square = stored(squares), signal = stored(signals);
  Distances d{};
  for (const double distance : stored(largest).x) d.max = distance > d.max ? distance : d.max;
  d.different = static_cast<uint32_t>(n_whole) - simd::total(equal);
  for (size_t i = 0; i < n_last; ++i) {
    const float of_a = a[n_whole + i], of_b = b[n_whole + i];
    const double number = static_cast<double>(of_a);
    const double distance = std::fabs(number - static_cast<double>(of_b));
    sum.x[i] += distance;
    square.x[i] += distance * distance;
    signal.x[i] += number * number;
    d.max = distance > d.max ? distance : d.max;
    d.different += of_a != of_b;
  }
  d.sum = sum.total();
  d.squares = square.total();
  d.signal = signal.total();
  return d;
}

/** A SlotFinder of kernel_table.h. */
inline void find_slots(const float* x, size_t n, const BinRange& range, uint32_t* slots) {
  const BinRange own = range;  // in registers: the compiler knows that no store changes it
  const size_t n_last = n % simd::kLanes, n_whole = n - n_last;
  if (own.guess.is_useful) {
    // Where all are guessed that can be, a list of the others: a branch for each register would be guessed
    // wrong.
    uint32_t undecided[kSlotsAtOnce / simd::kLanes + 1];
    size_t n_undecided = 0;
    for (size_t i = 0; i < n_whole; i += simd::kLanes) {
      undecided[n_undecided] = static_cast<uint32_t>(i);
      n_undecided += simd::guess_slots(slots + i, x + i, own) ? 0 : 1;
    }
    for (size_t k = 0; k < n_undecided; ++k) {
      simd::store_slots(slots + undecided[k], x + undecided[k], own);
    }
  } else {
    for (size_t i = 0; i < n_whole; i += simd::kLanes) simd::store_slots(slots + i, x + i, own);
  }
  if (n_last == 0) return;
  float last[simd::kLanes] = {};
  uint32_t slots_of_last[simd::kLanes];
  std::memcpy(last, x + n_whole, n_last * sizeof *x);
  simd::store_slots(slots_of_last, last, own);
  std::memcpy(slots + n_whole, slots_of_last, n_last * sizeof *slots);
}

/** A SlotPairFinder of kernel_table.h. */
inline void find_slot_pairs(const float* x, size_t n_pairs, const BinRange& range, uint32_t* pairs) {
  uint32_t slots[kSlotsAtOnce];
  find_slots(x, 2 * n_pairs, range, slots);
  const uint32_t n_slots = range.n_slots;
  for (size_t i = 0; i < n_pairs; ++i) pairs[i] = slots[i] * n_slots + slots[n_pairs + i];
}

}  // namespace
}  // namespace gguf
