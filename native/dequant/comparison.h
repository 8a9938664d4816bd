// How far the numbers of some blocks are from those of others, whatever the formats.
//
// The rule, which gives the same bits on every instruction set and for any number of threads: the pairs a[i],
// b[i] are taken in their order, in pieces of kPieceNumbers. Pairs that have no distance, since one of them
// is a NaN or an infinity and the other something else, are counted and left out; so are pairs of the same
// infinity and of two NaNs, which are equal; the others move up. Sums are binary64: |a[i] - b[i]|, its square
// and the square of a[i] are added to numbers i % 32 of 32 partial sums each, each operation rounded on its
// own. For h = 16, 8, 4, 2, 1: s[i] += s[i + h] for all i < h. The sums of pieces are added up in their
// order, to those of chunks of kChunkNumbers, and these to the whole.
#pragma once

#include <cstdint>

#include "dequant/formats.h"

namespace gguf {

struct Comparison {
  uint64_t count = 0;
  uint64_t different = 0;     // 0 and -0 are equal, and so are two NaNs
  uint64_t incomparable = 0;  // of these: without a distance
  double max_error = 0;       // the largest distance
  double sum_errors = 0;      // the sum of the distances,
  double sum_squares = 0;     // and of their squares
  double signal = 0;          // the sum of the squares of the numbers of the first that are finite in both

  /** Adds what comes after it. */
  void join(const Comparison& next);
};

/** Blocks of a format. */
struct Blocks {
  Format format;
  bool big_endian;
  const uint8_t* data;
};

/** Joins the comparison of n_numbers numbers to `total`: whole blocks of both. */
void compare_blocks(const Blocks& a, const Blocks& b, uint64_t n_numbers, Comparison& total);

}  // namespace gguf
