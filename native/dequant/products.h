// Products of rows of blocks with vectors: y[v][row] = the sum over all columns c of w[row][c] * x[v][c].
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
// Products that need not be exact may round w * x as well before they add it to p (step 2): where one
// rounding is slow, which is in WebAssembly only. All else is the same, so their bits are the same on every
// machine, too.
//
// So zeros added to the end of a row and of its vector change nothing: not a partial sum but from -0 to +0,
// which makes no difference to what is added up.
#pragma once

#include <cstdint>

#include "dequant/dequant.h"
#include "dequant/put_order.h"

namespace gguf {

struct KernelTable;
struct Tile;
using TileMultiplier = void (*)(const Tile& tile);

/** Whether the kernel of a format puts in the order kInterleavedOrder of put_order.h: Q2_K, Q3_K and TQ2_0.
 */
bool is_interleaved(const Format& format);

/**
 * The products of rows of one format with `n` vectors of `columns` numbers. Made once for a call, used by
 * every thread of it. It allocates nothing: whoever makes it brings memory for the packed vectors, which all
 * threads read, and scratch for each thread.
 */
class Products {
 public:
  /** `columns` is a multiple of the numbers of a block: 0 only if there will be no rows. */
  Products(const Format& format, bool big_endian, uint64_t columns, uint64_t n, bool exact = true) noexcept;

  /** How many floats `pack` writes: about n * columns. */
  uint64_t packed_floats() const noexcept;
  /** How many floats of scratch `multiply` needs: 220 KB, and 3 KB more for each vector if rows are long;
   * none for one vector. */
  uint64_t scratch_floats() const noexcept;

  /** Brings the vectors, one after the other at `x`, into the form that `multiply` reads. */
  void pack(const float* x, float* packed) const noexcept;

  /**
   * Multiplies n_rows rows, whose blocks follow each other from `rows` on, without alignment, with the packed
   * vectors: product v of row r goes to y[v * y_stride + r]. Reads not a byte beyond the blocks. `packed` and
   * `scratch` are aligned to 64 bytes, which makes it faster, or to 4. Threads may do this at the same time,
   * each with scratch and rows of its own; fastest where the number of rows is a multiple of kRowsAtOnce.
   */
  void multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                uint64_t y_stride) const noexcept;

  static constexpr uint64_t kRowsAtOnce = 12;

 private:
  void multiply_tiles(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                      uint64_t y_stride) const;
  void fill(const uint8_t* rows, uint64_t n_rows, uint64_t start, uint64_t n_columns, float* numbers) const;

  Format format_;
  const KernelTable& kernels_;
  bool swaps_;
  const TileMultiplier* tiles_;
  uint64_t columns_, n_;
  bool uses_tiles_;      // several vectors, blocks to be swapped, or not exact: rows are dequantized first
  uint64_t padded_;      // columns, completed to a multiple of 64
  uint64_t row_stride_;  // from row to row of dequantized numbers
  uint64_t n_rows_;      // that are dequantized at a time: a multiple of kRowsAtOnce
};

}  // namespace gguf
