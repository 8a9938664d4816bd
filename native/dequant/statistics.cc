#include "dequant/statistics.h"

#include <algorithm>
#include <cmath>

#include "dequant/dequant.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/partial_sums.h"
#include "dequant/pieces.h"

namespace gguf {
namespace {

/** Counts what is not finite, and moves the finite numbers up: returns how many those are. */
size_t take_finite(float* x, size_t n, Statistics& total) {
  size_t n_finite = 0;
  for (size_t i = 0; i < n; ++i) {
    const float number = x[i];
    if (std::isfinite(number)) {
      x[n_finite++] = number;
    } else if (std::isnan(number)) {
      ++total.nan;
    } else {
      ++(number > 0 ? total.positive_infinity : total.negative_infinity);
    }
  }
  return n_finite;
}

/** The sum of the squared distances from `mean` of finite numbers: step 3 of the rule. */
double squared_distances(const float* x, size_t n, double mean) {
  PartialSums sums, squares;
  for (size_t i = 0; i < n; ++i) {
    const double distance = static_cast<double>(x[i]) - mean;
    sums.x[i % kSums] += distance;
    squares.x[i % kSums] += distance * distance;
  }
  const double sum = sums.total();
  return std::max(0.0, squares.total() - sum * sum / static_cast<double>(n));
}

/** What is known of n finite numbers, one at least: steps 2 and 3 of the rule. */
void describe(const float* x, size_t n, const Moments& moments, Statistics& piece) {
  constexpr double kMostLoss = 1024;
  const auto n_numbers = static_cast<double>(n);
  // Adding 0 takes the sign from a zero: which of two zeros is the smallest depends on the order.
  piece.min = static_cast<double>(moments.min) + 0.0;
  piece.max = static_cast<double>(moments.max) + 0.0;
  piece.zeros = moments.zeros;
  piece.mean = moments.sum / n_numbers;
  piece.m2 = moments.squares - moments.sum * moments.sum / n_numbers;
  if (!(moments.squares <= kMostLoss * piece.m2)) piece.m2 = squared_distances(x, n, piece.mean);
}

}  // namespace

void Statistics::join(const Statistics& next) {
  const auto n_this = static_cast<double>(finite()), n_next = static_cast<double>(next.finite());
  count += next.count;
  nan += next.nan;
  positive_infinity += next.positive_infinity;
  negative_infinity += next.negative_infinity;
  zeros += next.zeros;
  if (n_next == 0) return;
  min = std::min(min, next.min);
  max = std::max(max, next.max);
  if (n_this == 0) {
    mean = next.mean;
    m2 = next.m2;
    return;
  }
  const double distance = next.mean - mean, share = n_next / (n_this + n_next);
  mean += distance * share;
  m2 += next.m2 + distance * distance * (n_this * share);
}

void measure_blocks(const Format& format, bool big_endian, const uint8_t* src, uint64_t n_blocks,
                    Measure measure, Statistics& total, BinCounter* counter) {
  const KernelTable& table = active_kernels();
  alignas(64) float x[kPieceNumbers];
  for_each_piece(format, src, n_blocks, [&](const uint8_t* blocks, uint64_t n_of_piece) {
    auto n = static_cast<size_t>(n_of_piece * format.block_elements);
    Statistics piece;
    piece.count = n;
    dequantize(format, Out::kFloat32, Store::kPlain, big_endian, blocks, n_of_piece, x);
    if (measure == Measure::kFinite) {
      if (!table.all_finite(x, n)) take_finite(x, n, piece);
    } else {
      Moments moments = table.measure(x, n);
      if (!std::isfinite(moments.squares)) {
        n = take_finite(x, n, piece);
        if (n > 0) moments = table.measure(x, n);
      }
      if (n > 0) {
        describe(x, n, moments, piece);
        if (counter != nullptr) counter->count(x, n);
      }
    }
    total.join(piece);
  });
}

}  // namespace gguf
