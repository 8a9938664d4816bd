// Products of numbers: those of rows with vectors of binary32.
//
// The rule, which gives the same bits on every instruction set, for any number of vectors at a time and for
// any split of the rows:
//
//   1. w are the numbers that dequantize gives. The numbers of a row are taken in the order in which the
//      kernel of the format puts them, 32 at a time: ascending, but for the formats that is_interleaved
//      names. Of these, the eight times 32 numbers of a block are taken in the order kInterleavedOrder.
//   2. There are 64 partial sums, binary32, +0 at first. The i-th number w in that order goes to number
//      i % 64 of them, by one fused multiply-add: p = w * x + p, rounded once.
//   3. For h = 32, 16, 8, 4, 2, 1: p[i] = p[i] + p[i + h] for all i < h. The product is p[0] + 0, never -0.
//
// So zeros added to the end of a row and of its vector change nothing: not a partial sum but from -0 to +0,
// which makes no difference to what is added up.
#pragma once

#include <cstdint>

#include "dequant/formats.h"
#include "dequant/put_order.h"

namespace gguf {

struct KernelTable;

/** Whether the kernel of a format puts in the order kInterleavedOrder of put_order.h: Q2_K, Q3_K and TQ2_0.
 */
bool is_interleaved(const Format& format);

/** One of the two of products.h, which says what the functions do. */
class NumberProducts {
 public:
  NumberProducts(const Format& format, bool big_endian, uint64_t columns, uint64_t n) noexcept;

  uint64_t packed_floats() const noexcept;
  /** 220 KB, and 3 KB more for each vector if rows are long; for one vector none, or
   * a row of blocks that are rewritten. */
  uint64_t scratch_floats() const noexcept;
  void pack(const float* x, float* packed, uint64_t part = 0, uint64_t n_parts = 1) const noexcept;
  void multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                uint64_t y_stride) const noexcept;

  static constexpr uint64_t kRowsAtOnce = 12;

 private:
  void multiply_tiles(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                      uint64_t y_stride) const;
  void fill(const uint8_t* rows, uint64_t n_rows, uint64_t start, uint64_t n_columns, float* numbers) const;

  Format format_;
  const KernelTable& kernels_;
  bool big_endian_, rewrites_;
  uint64_t columns_, n_;
  bool uses_tiles_;      // several vectors: rows are dequantized first
  uint64_t padded_;      // columns, completed to a multiple of 64
  uint64_t row_stride_;  // from row to row of dequantized numbers
  uint64_t n_rows_;      // that are dequantized at a time: a multiple of kRowsAtOnce
};

}  // namespace gguf
