// What numbers in the first-level cache add up to: the rules of statistics.h and comparison.h, in the
// registers of an instruction set.
//
// There are kSums partial sums; a register of numbers is kLanes of them. A pass takes from every kSums
// numbers those that belong to its partial sums, as in a tile (tile.h): so that they stay in registers.
#pragma once

#include <cstdint>

#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

/** Partial sums of each kind. Number i of a piece goes to number i % kSums of them. */
constexpr int kSums = 32;

/** Adds up partial sums: the upper half to the lower half, until there is one. */
inline double add_up_sums(double (&sums)[kSums]) {
  for (int h = kSums / 2; h >= 1; h /= 2) {
    for (int i = 0; i < h; ++i) sums[i] += sums[i + h];
  }
  return sums[0];
}

/** The smallest of numbers without a sign, or the largest of numbers that all have one: the smallest bits. */
inline float least_bits(const float* x, size_t n) {
  uint32_t least = UINT32_MAX;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = bits_of_float(x[i]);
    least = bits < least ? bits : least;
  }
  return float_of_bits(least);
}

/**
 * A Measurer of kernel_table.h. The range is found among the bits of numbers: as signed integers, the largest
 * are those of the largest number, unless all numbers have a sign; as unsigned ones, those of the smallest,
 * if any has a sign.
 */
inline Moments measure(const float* x, size_t n) {
  // Two registers of numbers in a pass, with four of sums each. What has no order, the range and the zeros,
  // has one register for both: with AVX2 there are no more.
  constexpr int kLanes = simd::kLanes, kPassLanes = 2 * kLanes;
  const size_t n_whole = n / kSums * kSums;
  alignas(64) double sums[kSums] = {}, squares[kSums] = {};
  alignas(64) float largest[kLanes], most_bits[kLanes];
  alignas(64) uint32_t counts[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) largest[i] = most_bits[i] = x[0];
  if (n_whole > 0) {
    simd::Lanes high = simd::load_lanes(largest), most = simd::load_lanes(most_bits);
    simd::Counts zeros{};
    for (int first = 0; first < kSums; first += kPassLanes) {
      simd::Doubles sum[2] = {}, square[2] = {};
      for (size_t at = static_cast<size_t>(first); at < n_whole; at += kSums) {
        const float* const p = x + at;
        const simd::Lanes a = simd::load_lanes(p), b = simd::load_lanes(p + kLanes), zero{};
        high = simd::max_signed(simd::max_signed(a, b), high);
        most = simd::max_unsigned(simd::max_unsigned(a, b), most);
        zeros = simd::count_equal(b, zero, simd::count_equal(a, zero, zeros));
        GGUF_UNROLL
        for (int g = 0; g < 2; ++g) {
          const simd::Doubles wide = simd::load_doubles(p + g * kLanes);
          sum[g] = simd::add(wide, sum[g]);
          square[g] = simd::add_square(wide, square[g]);
        }
      }
      GGUF_UNROLL
      for (int g = 0; g < 2; ++g) {
        simd::store_doubles(sums + first + g * kLanes, sum[g]);
        simd::store_doubles(squares + first + g * kLanes, square[g]);
      }
    }
    simd::store_lanes(largest, high);
    simd::store_lanes(most_bits, most);
    simd::store_counts(counts, zeros);
  }
  int32_t high = INT32_MIN;
  uint32_t most = 0;
  Moments m{};
  const auto look_at = [&](float number) {
    const uint32_t bits = bits_of_float(number);
    high = static_cast<int32_t>(bits) > high ? static_cast<int32_t>(bits) : high;
    most = bits > most ? bits : most;
  };
  for (int i = 0; i < kLanes; ++i) {
    look_at(largest[i]);
    look_at(most_bits[i]);
    m.zeros += counts[i];
  }
  for (size_t i = n_whole; i < n; ++i) {
    const double wide = static_cast<double>(x[i]);
    sums[i - n_whole] += wide;
    squares[i - n_whole] += wide * wide;
    look_at(x[i]);
    m.zeros += x[i] == 0;
  }
  m.sum = add_up_sums(sums);
  m.squares = add_up_sums(squares);
  m.max = high >= 0 ? float_of_bits(static_cast<uint32_t>(high)) : least_bits(x, n);
  m.min = most > INT32_MAX ? float_of_bits(most) : least_bits(x, n);
  return m;
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
  constexpr int kLanes = simd::kLanes;
  const size_t n_whole = n / kSums * kSums;
  alignas(64) double sums[kSums] = {}, squares[kSums] = {}, signals[kSums] = {}, largest[kSums] = {};
  alignas(64) uint32_t counts[kLanes] = {};
  if (n_whole > 0) {
    simd::Counts equal{};
    for (int first = 0; first < kSums; first += kLanes) {
      simd::Doubles sum{}, square{}, signal{}, most{};
      for (size_t at = static_cast<size_t>(first); at < n_whole; at += kSums) {
        equal = simd::count_equal(simd::load_lanes(a + at), simd::load_lanes(b + at), equal);
        const simd::Doubles number = simd::load_doubles(a + at);
        const simd::Doubles distance = simd::magnitude(simd::sub(number, simd::load_doubles(b + at)));
        sum = simd::add(distance, sum);
        square = simd::add_rounded_square(distance, square);
        most = simd::max(distance, most);
        signal = simd::add_square(number, signal);
      }
      simd::store_doubles(sums + first, sum);
      simd::store_doubles(squares + first, square);
      simd::store_doubles(signals + first, signal);
      simd::store_doubles(largest + first, most);
    }
    simd::store_counts(counts, equal);
  }
  Distances d{};
  d.different = static_cast<uint32_t>(n_whole);
  for (int i = 0; i < kLanes; ++i) d.different -= counts[i];
  for (int i = 0; i < kSums; ++i) d.max = largest[i] > d.max ? largest[i] : d.max;
  for (size_t i = n_whole; i < n; ++i) {
    const double number = static_cast<double>(a[i]);
    const double distance = std::fabs(number - static_cast<double>(b[i]));
    sums[i - n_whole] += distance;
    squares[i - n_whole] += distance * distance;
    signals[i - n_whole] += number * number;
    d.max = distance > d.max ? distance : d.max;
    d.different += a[i] != b[i];
  }
  d.sum = add_up_sums(sums);
  d.squares = add_up_sums(squares);
  d.signal = add_up_sums(signals);
  return d;
}

}  // namespace
}  // namespace gguf
