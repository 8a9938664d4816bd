// The functions of one instruction set: one per format and kind of store, and one per 16-bit output.
#pragma once

#include <cstdint>

#include "dequant/bins.h"
#include "dequant/formats.h"
#include "dequant/out.h"

namespace gguf {

/** Dequantizes n_blocks blocks to binary32. With Store::kStreaming, dst is aligned to kStreamingAlignment. */
using Kernel = void (*)(const uint8_t* src, uint64_t n_blocks, float* dst);
/** Converts n numbers to one of the 16-bit outputs; the same rule. */
using Converter = void (*)(const float* src, uint64_t n, uint16_t* dst);

/** Multiplies rows with one vector, which is completed with zeros to a multiple of 64 numbers: y[row]. */
using Multiplier = void (*)(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x, float* y);

/** The same with two vectors, x_stride numbers apart: y[vector * y_stride + row]. */
using PairMultiplier = void (*)(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x,
                                uint64_t x_stride, float* y, uint64_t y_stride);

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

  const float* x;  // the vectors, packed by Products::pack
  float* sums;     // memory for 64 numbers for each row of kTileRows and each vector
  bool starts;     // these are the first columns: sums are zero, whatever is in the memory
  bool ends;       // these are the last columns: sums are added up
  float* y;        // then y[vector * y_stride + row]
  uint64_t y_stride;
};
using TileMultiplier = void (*)(const Tile& tile);

/** What a piece of numbers adds up to, by the rule of statistics.h; of use only where `squares` is finite. */
struct Moments {
  double sum, squares;
  float min, max;
  uint32_t zeros;
};
using Measurer = Moments (*)(const float* x, size_t n);
/** Whether all numbers are finite. */
using FiniteTest = bool (*)(const float* x, size_t n);

/** How far the numbers of two pieces are apart, by the rule of comparison.h; of use only where `squares` is
 * finite. */
struct Distances {
  double sum, squares, max;
  double signal;  // the squares of the numbers of the first
  uint32_t different;
};
using PairMeasurer = Distances (*)(const float* a, const float* b, size_t n);

/** Numbers whose slots in a histogram are found before they are counted: all stay in the first-level cache.
 */
constexpr size_t kSlotsAtOnce = 1024;
/** The slots of n numbers, up to kSlotsAtOnce. None is a NaN. */
using SlotFinder = void (*)(const float* x, size_t n, const BinRange& range, uint32_t* slots);
/** The same of n_pairs pairs of numbers: slots a and b are a * n_slots + b. */
using SlotPairFinder = void (*)(const float* x, size_t n_pairs, const BinRange& range, uint32_t* pairs);

// ---- products with vectors of int8: see integer_products.h

/** What a format's kernel hands out as levels in bytes. */
struct CodeFacts {
  int run;          // weights with one scale: 16 or 32
  bool affine;      // a minimum is added, and levels have no sign
  int bias;         // what has been added to levels: none for affine ones
  int stored_bias;  // the same of those that are unpacked
  int kind;         // which of the set's ways to multiply fits them
  int level_bytes;  // of a level, and of a number of a vector, where a tile takes them: 1 or 2
};

/** Memory for levels, CodeFacts::level_bytes each, and the scales and minima of their runs. What is beyond
 * them can be written, up to a whole group of blocks. */
struct UnpackedCodes {
  uint8_t* bytes;
  float *scales, *minima;
};
/** Unpacks n_blocks blocks. */
using Unpacker = void (*)(const uint8_t* src, uint64_t n_blocks, const UnpackedCodes& to);

/** A run of a vector, rounded. */
struct RoundedRun {
  static constexpr int kColumns = 32;
  int8_t codes[kColumns];
  float scale;
  int32_t sums[2];  // of the first 16 codes, and of the others
};
using Rounder = void (*)(const float* x, uint64_t n_runs, RoundedRun* runs);

/** A vector, rounded, with what is needed for each run of weights. For formats of small blocks it is repeated
 * until it is 512 numbers longer, because rows may start anywhere in a group of blocks. */
struct RoundedVector {
  // With runs of 32, the first 16 of each run, and elsewhere the last 16; with runs of 16 in the order of the
  // columns.
  const int8_t *codes, *last_halves;
  const float* scales;
  const float* offsets;        // of affine formats: scale * sum of the codes
  const int32_t* corrections;  // of the others: what the bias has added to sums of products, negated
};
/** Multiplies rows with one vector or two: y[vector * y_stride + row]. Two have a multiple of 256 columns. */
using CodeMultiplier = void (*)(const uint8_t* rows, uint64_t n_rows, uint64_t columns,
                                const RoundedVector* x, float* y, uint64_t y_stride);

/** The order in which a tile takes partial sums: so two that are added up follow each other, and then two of
 * these pairs, and so on. A number's bits are those of its position, reversed. */
constexpr uint64_t kSumOrder[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/** Some runs of LevelTiles::rows rows of levels, to be multiplied with a few vectors. Runs are in the
 * order of their partial sums: 0, 16, 32 ..., 8, 24 ... */
struct CodeTile {
  const uint8_t* w;  // of each run, words of four bytes, or eight if x has such: one word of each row
  uint64_t n_runs;
  const float *scales, *minima;  // of each run, in ascending order: those of each row
  bool affine;
  // The vectors. Of each run: words of LevelTiles::word_bytes, one of each vector; the scale of each; the
  // offset or the correction of each, which is 0 without a stored bias.
  const uint8_t* x;
  float* sums;  // 16 partial sums for each vector and row, in kSumOrder
  bool starts;  // these are the first columns: sums are zero, whatever is in the memory
  bool ends;    // these are the last columns: sums are added up as they come
  float* y;     // then y[vector * y_stride + row]
  uint64_t y_stride;
  uint64_t n_rows;  // that are wanted, up to LevelTiles::rows
  uint64_t n_vectors;
};
using CodeTileMultiplier = void (*)(const CodeTile& tile);

/** The most vectors that a tile of any set is for. */
constexpr int kMaxCodeVectors = 16;
/** For one vector, two, and so on: as many as the set has. */
struct CodeTileMultipliers {
  CodeTileMultiplier of[kMaxCodeVectors];
};

/** Of each of LevelTiles::rows rows, `stride` bytes apart, a few words of four bytes: the first of each row,
 * the second of each row ... */
using RowTransposer = void (*)(const uint8_t* rows, uint64_t stride, uint8_t* to);

/** Of a block of each of LevelTiles::rows rows, `stride` bytes apart, the levels of each run, as a
 * RowTransposer writes them. */
using LevelTransposer = void (*)(const uint8_t* blocks, uint64_t stride, uint8_t* const* runs);
/** Of a block, at most. */
constexpr int kMostRuns = 16;

constexpr int kMaxByteKinds = 5;

/** What multiplies levels with several vectors. A set that is another one with faster products of levels has
 * its own, and says all of it: nothing of this is inherited unseen. */
struct LevelTiles {
  CodeTileMultipliers of[2][kMaxByteKinds];  // for runs of 16, and of 32; [CodeFacts::kind]
  int rows, vectors;                         // of a tile; of vectors, at most
  uint64_t word_bytes;                       // see CodeTile::x: 4, 8 or 32 (whole runs)
  RowTransposer transpose[3];                // 16, 32 and 64 bytes of each row, as the tiles take them
  RowTransposer transpose_scales;            // four of each row
  // Levels of this kind are unpacked with 16 bits, but a tile takes bytes. Without minima, kNarrowBias is
  // added.
  int narrow_kind = -1;
  RowTransposer narrow[2][2] = {};  // [affine][runs of 32] of a run of each row
  // Where the processor has a state for tiles: sets it for so many vectors, before such tiles are multiplied,
  // and gives it back after the last as the first call found it.
  void (*start)(uint64_t n_vectors, bool is_first) = nullptr;
  void (*finish)() = nullptr;
};

// ---- the table

/** The functions of one format. */
struct FormatKernels {
  Kernel store[2];  // [Store]
  Multiplier multiply;
  PairMultiplier multiply_pair;  // nullptr where blocks are no numbers, and where it would not be faster
  // nullptr where blocks are numbers:
  CodeMultiplier multiply_codes;  // and where tiles are faster even with one vector
  CodeMultiplier multiply_two;    // nullptr: one after the other
  uint64_t most_dots;             // vectors for which these take less time than a tile
  Unpacker unpack;                // without the levels, where there is:
  LevelTransposer transpose_levels;
  CodeFacts (*code_facts)();
};

struct KernelTable {
  const char* isa;
  FormatKernels formats[kFormatCount];  // [FormatIndex]
  Converter to_float16[2];              // [Store]
  Converter to_bfloat16[2];
  void (*store_fence)();               // ends a series of streaming stores
  TileMultiplier tiles[kTileVectors];  // for one vector, two, and so on
  int lanes;  // rows or sums in a register: of the 64 partial sums that a tile works on at a time
  Measurer measure;
  FiniteTest all_finite;
  PairMeasurer measure_pair;
  SlotFinder find_slots;
  SlotPairFinder find_slot_pairs;
  Rounder round_runs;
  LevelTiles level_tiles;
  // Of a set that is another one with faster products of levels:
  const KernelTable* base;            // the other one; nullptr in sets of their own
  uint64_t n_wanted, columns_wanted;  // products with fewer vectors or columns are those of `base`
  bool (*is_ready)();  // asked before the others; if it says no, they are, too. nullptr: always ready
};

/** What a file of isa/ has at its end: its table where kernels_for_this_isa.h defines it. */
#define GGUF_THIS_ISA nullptr

// One per source file of isa/; nullptr if the compiler's target has no such instructions.
extern const KernelTable* const kScalarKernels;
extern const KernelTable* const kAvx2Kernels;
extern const KernelTable* const kAvx2VnniKernels;
extern const KernelTable* const kAvx2EvexVnniKernels;  // has the same name
extern const KernelTable* const kAvx512Kernels;
extern const KernelTable* const kAvx512AmxKernels;
extern const KernelTable* const kNeonKernels;
extern const KernelTable* const kNeonDotprodKernels;
extern const KernelTable* const kNeonI8mmKernels;
extern const KernelTable* const kWasmKernels;
extern const KernelTable* const kWasmRelaxedKernels;
/** Gives kWasmRelaxedKernels its tiles, which take as many vectors as there are, for runs of 16 and of 32;
 * nullptr: none. */
void use_relaxed_tiles(CodeTileMultiplier of_16, CodeTileMultiplier of_32);

/** The one in use. */
const KernelTable& active_kernels();

}  // namespace gguf
