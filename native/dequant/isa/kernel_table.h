// The functions of one instruction set: one per format and kind of store, and one per 16-bit output.
#pragma once

#include <cstdint>

#include "dequant/dequant.h"

namespace gguf {

/** Dequantizes n_blocks blocks to binary32. With Store::kStreaming, dst is aligned to kStreamingAlignment. */
using Kernel = void (*)(const uint8_t* src, uint64_t n_blocks, float* dst);
/** Converts n numbers to one of the 16-bit outputs; the same rule. */
using Converter = void (*)(const float* src, uint64_t n, uint16_t* dst);

/** Multiplies rows with one vector, which is completed with zeros to a multiple of 64 numbers: y[row]. */
using Multiplier = void (*)(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x, float* y);

/** Rows that a tile is for, at most. */
constexpr int kTileRows = 12;
/** Vectors that a tile is for, at most. */
constexpr int kTileVectors = 6;
/** Steps of 64 columns that are multiplied with all rows of a tile before the next: as much of the vectors as
 * stays in the first-level cache. */
constexpr uint64_t kTileSteps = 16;

/** Numbers of a few rows, or some columns of them, to be multiplied with a few vectors. */
struct Tile {
  const float* w;       // rows of numbers, ascending, completed with zeros to a multiple of 64
  uint64_t row_stride;  // numbers from row to row
  uint64_t n_rows;      // up to kTileRows; what follows them can be read like rows, up to kTileRows
  uint64_t n_steps;     // of 64 numbers
  // Where the numbers of a step are, which go to the 64 partial sums: 32 in a run, then 32 more.
  uint64_t half_offset;    // from the first 32 of a step to the other 32
  uint64_t step_stride;    // from step to step
  uint64_t steps_per_run;  // after which comes a stride of its own
  uint64_t run_stride;     // from run to run

  const float* x;  // the vectors, packed by pack_vectors
  float* sums;     // memory for 64 numbers for each row of kTileRows and each vector
  bool starts;     // these are the first columns: sums are zero, whatever is in the memory
  bool ends;       // these are the last columns: sums are added up
  float* y;        // then y[vector * y_stride + row]
  uint64_t y_stride;
};
using TileMultiplier = void (*)(const Tile& tile);

/** How often a multiplication and its addition to a sum are rounded. */
enum class Rounding : uint8_t { kOnce, kTwice };

/** The faster one: WebAssembly alone has no instruction that rounds once and does so everywhere. */
#if defined(__wasm__)
constexpr Rounding kFastRounding = Rounding::kTwice;
#else
constexpr Rounding kFastRounding = Rounding::kOnce;
#endif

/** What a piece of numbers adds up to, by the rule of statistics.h; of use only where `squares` is finite. */
struct Moments {
  double sum, squares;
  float min, max;
  uint32_t zeros;
};
using Measurer = Moments (*)(const float* x, size_t n);
/** The same of the numbers of n_blocks blocks, which are written to `numbers`. */
using StoringMeasurer = Moments (*)(const uint8_t* src, uint64_t n_blocks, float* numbers);
/** Whether all numbers are finite. */
using FiniteTest = bool (*)(const float* x, size_t n);

/** How far the numbers of two pieces are apart, by the rule of comparison.h; of use only where `squares` and
 * `signal` are finite. */
struct Distances {
  double sum, squares, max;
  double signal;  // the squares of the numbers of the first
  uint32_t different;
};
using PairMeasurer = Distances (*)(const float* a, const float* b, size_t n);

struct KernelTable {
  const char* isa;
  Kernel kernels[kFormatCount][2];  // [FormatIndex][Store]
  Converter to_float16[2];          // [Store]
  Converter to_bfloat16[2];
  void (*store_fence)();  // ends a series of streaming stores
  Multiplier multipliers[kFormatCount];
  TileMultiplier tiles[kTileVectors];       // for one vector, two, and so on
  TileMultiplier fast_tiles[kTileVectors];  // with kFastRounding
  int lanes;                                // of the 64 partial sums that a tile works on at a time
  Measurer measure;
  StoringMeasurer store_and_measure[kFormatCount];
  FiniteTest all_finite;
  PairMeasurer measure_pair;
};

// One per source file of isa/; nullptr if the compiler's target has no such instructions.
extern const KernelTable* const kScalarKernels;
extern const KernelTable* const kAvx2Kernels;
extern const KernelTable* const kAvx512Kernels;
extern const KernelTable* const kNeonKernels;
extern const KernelTable* const kWasmKernels;

/** The one in use. */
const KernelTable& active_kernels();

}  // namespace gguf
