#include "dequant/comparison.h"

#include <algorithm>
#include <cmath>

#include "dequant/dequant.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/pieces.h"

namespace gguf {
namespace {

/** Counts pairs without a distance, and moves the others up: returns how many those are. */
size_t take_comparable(float* a, float* b, size_t n, Comparison& total) {
  size_t n_taken = 0;
  for (size_t i = 0; i < n; ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) {
      a[n_taken] = a[i];
      b[n_taken++] = b[i];
    } else if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) {
      ++total.different;
      ++total.incomparable;
    }
  }
  return n_taken;
}

}  // namespace

void Comparison::join(const Comparison& next) {
  count += next.count;
  different += next.different;
  incomparable += next.incomparable;
  max_error = std::max(max_error, next.max_error);
  sum_errors += next.sum_errors;
  sum_squares += next.sum_squares;
  signal += next.signal;
}

void compare_blocks(const Blocks& a, const Blocks& b, uint64_t n_numbers, Comparison& total) {
  const PairMeasurer measure = active_kernels().measure_pair;
  alignas(64) float x[kPieceNumbers], y[kPieceNumbers];
  const uint8_t* of_b = b.data;
  for_each_piece(a.format, a.data, n_numbers / a.format.block_elements,
                 [&](const uint8_t* of_a, uint64_t n_of_a) {
                   auto n = static_cast<size_t>(n_of_a * a.format.block_elements);
                   const uint64_t n_of_b = n / b.format.block_elements;
                   dequantize(a.format, Out::kFloat32, Store::kPlain, a.big_endian, of_a, n_of_a, x);
                   dequantize(b.format, Out::kFloat32, Store::kPlain, b.big_endian, of_b, n_of_b, y);
                   of_b += n_of_b * b.format.block_bytes;

                   Comparison piece;
                   piece.count = n;
                   Distances distances = measure(x, y, n);
                   // Where a number is not finite, neither is its distance.
                   if (!std::isfinite(distances.squares)) {
                     n = take_comparable(x, y, n, piece);
                     distances = measure(x, y, n);
                   }
                   piece.different += distances.different;
                   piece.max_error = distances.max;
                   piece.sum_errors = distances.sum;
                   piece.sum_squares = distances.squares;
                   piece.signal = distances.signal;
                   total.join(piece);
                 });
}

}  // namespace gguf
