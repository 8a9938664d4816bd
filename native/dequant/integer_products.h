// Products with vectors that are rounded to 8 bits: faster, since only integers are multiplied number by
// number, and as exact everywhere.
//
// The rule, which gives the same bits on every instruction set, for any number of vectors at a time and for
// any split of the rows. All arithmetic but that of integers is binary32, each operation rounded on its own.
//
//   1. A vector x is cut into runs of 32 columns. a is the largest |x| of a run.
//      If a number of the run is not finite, d = NaN and all q = 0.
//      Otherwise, if a < 2^-119, d = 0 and all q = 0.
//      Otherwise, d = a / 127, f = 127 / a and q = x * f, rounded to the nearest integer, halves to even:
//      -127 to 127.
//   2. The weights of a row that share a scale are a run r = 0, 1, 2 ... of 32 columns, or of 16 with Q2_K,
//      Q3_K, Q6_K, IQ2_XS, IQ2_S, IQ1_M and NVFP4. A weight is w * L, or w * L + m, with an integer L, its
//      level, and w and m for the whole run (kernels/ has their formulas: w is the number that a kernel
//      scales levels by, and levels.h has these). Then
//          S = the sum of L * q over the run: an integer below 2^24.
//   3. There are 16 partial sums p, +0 at first. Runs are taken in ascending order; p[r % 16] gets first
//          p = p + (w * d) * S
//      and then, in formats with m, with s = the sum of q over the run,
//          p = p + m * (d * s).
//   4. For h = 8, 4, 2, 1: p[i] = p[i] + p[i + h] for all i < h. The product is p[0].
//
// What follows: a vector with a number that is not finite has products that are all NaN, as has a row with a
// scale that is NaN. A product is never -0, since a sum that starts with +0 is not.
//
// Two roundings rather than a fused multiply-add cost little, once for 16 or 32 weights, and are what
// JavaScript and WebAssembly can do as well. Sixteen partial sums are a register of AVX-512.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dequant/formats.h"
#include "dequant/isa/kernel_table.h"

namespace gguf {

struct CodeFacts;

/** Those for products of rows of a format with n vectors: `kernels`, or the set that it is based on. */
const KernelTable& kernels_for_products(const KernelTable& kernels, const Format& format, uint64_t columns,
                                        uint64_t n);

/** One of the two of products.h, which says what the functions do. */
class IntegerProducts {
 public:
  /** `format` is one whose blocks are not numbers. `prepared`: whether there are prepared rows. */
  IntegerProducts(const Format& format, bool big_endian, uint64_t columns, uint64_t n,
                  bool prepared = false) noexcept;
  /** By other kernels than those in use, for tests. */
  IntegerProducts(const Format& format, bool big_endian, uint64_t columns, uint64_t n,
                  const KernelTable& kernels, bool prepared = false) noexcept;

  uint64_t packed_floats() const noexcept;
  /** For tiles up to 400 KB, and 1 KB more for each vector if rows are long. Without tiles none, or a row of
   * blocks that are rewritten. */
  uint64_t scratch_floats() const noexcept;
  void pack(const float* x, float* packed, uint64_t part = 0, uint64_t n_parts = 1) const noexcept;
  void multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                uint64_t y_stride, const float* prepared = nullptr) const noexcept;
  bool reads_prepared() const noexcept { return reads_prepared_; }
  uint64_t prepared_floats() const noexcept;
  void prepare(const uint8_t* rows, uint64_t n_rows, float* scratch, float* to) const noexcept;

  /** So few are multiplied by the kernels whose tiles prepared rows are for. */
  static constexpr uint64_t kPreparedVectors = 3;
  static constexpr uint64_t kRowsAtOnce = 32;  // a multiple of LevelTiles::rows of every set

 private:
  /** Vectors are shared out evenly among the tiles, since few use a tile badly. */
  struct VectorTiles {
    uint64_t n = 0, vectors = 0, n_larger = 0;  // the first tiles have one vector more
    uint64_t first_vector(uint64_t tile) const { return vectors * tile + std::min(tile, n_larger); }
    uint64_t n_vectors(uint64_t tile) const { return vectors + (tile < n_larger ? 1 : 0); }
  };
  uint64_t dot_floats() const;
  uint64_t repeated_columns() const;
  /** As shifts: a division by a variable takes as long as unpacking many blocks. */
  uint64_t runs_in(uint64_t columns) const { return run_ == 16 ? columns / 16 : columns / 32; }
  uint64_t run_bytes() const;
  void pack_for_dots(const float* x, float* packed) const;
  template <uint64_t kRun, class Number>
  void pack_for_tiles(const float* x, float* packed, uint64_t tile, uint64_t end) const;
  template <uint64_t kRun, uint64_t kWord, class Number>
  void pack_words(const float* x, float* packed, uint64_t tile, uint64_t end) const;
  void unpack(Unpacker unpack, const uint8_t* blocks, uint64_t n_blocks, uint8_t* rewritten,
              const UnpackedCodes& to) const;
  void multiply_dots(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                     uint64_t y_stride) const;
  RoundedVector rounded_vector(const float* packed) const;
  void multiply_tiles(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                      uint64_t y_stride, const float* prepared) const;
  struct TileRows;
  struct TileMemory;
  TileMemory tile_memory(float* scratch) const;
  TileRows prepared_rows(float* group, uint64_t start) const;
  void fill(const uint8_t* rows, uint64_t n_rows, uint64_t start, uint64_t n_columns,
            const TileMemory& memory, const TileRows& to) const;

  Format format_;
  const KernelTable& kernels_;
  bool big_endian_, rewrites_;
  uint64_t columns_, n_;
  VectorTiles tiles_;
  // Facts of the format's kernel.
  uint64_t run_;  // columns of a run of weights
  bool affine_;
  int bias_, kind_;
  uint64_t level_bytes_, tile_bytes_;  // as they are unpacked, and where a tile takes them
  bool narrows_, transposes_levels_;
  uint64_t part_;        // columns of a row that are unpacked at a time
  bool uses_dots_;       // rather than tiles
  bool reads_prepared_;  // which kernels with other tiles cannot
};

}  // namespace gguf
