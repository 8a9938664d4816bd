// What the numbers of blocks are like: how many there are of each kind, their range, mean and spread, and a
// histogram.
//
// The rule, which gives the same bits on every instruction set and for any number of threads:
//
//   1. The numbers that dequantize gives are taken in their order, in pieces of kPieceNumbers. Of a piece,
//   those
//      that are not finite are counted and left out; the others move up.
//   2. Sums are binary64. Number i of a piece is added to number i % 32 of 32 partial sums, and its square,
//   which
//      is exact, to number i % 32 of 32 others: s and q. For h = 16, 8, 4, 2, 1: s[i] += s[i + h] for all i <
//      h; likewise q.
//   3. The mean of the n numbers of a piece is s / n, and the sum of the squared distances from it is
//      m2 = q - s * s / n. Where that loses more than ten bits, q > 1024 * m2, the numbers are taken a second
//      time: s and q are those of x - mean, by step 2, and m2 = q - s * s / n of these, at least 0.
//   4. Pieces are joined in their order to chunks of kChunkNumbers, and these in their order to the whole.
//   Two
//      parts a and b give, with d = mean(b) - mean(a) and n = n(a) + n(b):
//      mean = mean(a) + d * (n(b) / n), m2 = m2(a) + m2(b) + d * d * (n(a) * (n(b) / n)).
//
// A sum of squares of binary32 numbers is finite in binary64 if they all are, and only then: what is not
// finite needs no instructions of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "dequant/bins.h"
#include "dequant/formats.h"

namespace gguf {

/** Numbers of a chunk: what one thread works on at a time. Whole pieces. */
constexpr uint64_t kChunkNumbers = uint64_t{1} << 18;

struct Statistics {
  uint64_t count = 0;
  uint64_t nan = 0;
  uint64_t positive_infinity = 0;
  uint64_t negative_infinity = 0;
  uint64_t zeros = 0;  // of either sign
  // Of the finite numbers:
  double min = std::numeric_limits<double>::infinity();  // never -0; infinite where there are none
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double m2 = 0;  // the sum of the squared distances from the mean

  uint64_t finite() const { return count - nan - positive_infinity - negative_infinity; }
  /** Adds what comes after it. */
  void join(const Statistics& next);
};

/** What is found out about numbers. */
enum class Measure : uint8_t {
  kFinite,  // how many there are, and how many are not finite: at nearly the speed of dequantization
  kAll,
};

/** Joins the statistics of n_blocks blocks at `src` to `total`, and counts their numbers in `counter`, unless
 * that is null. */
void measure_blocks(const Format& format, bool big_endian, const uint8_t* src, uint64_t n_blocks,
                    Measure measure, Statistics& total, BinCounter* counter);

}  // namespace gguf
