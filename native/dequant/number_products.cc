#include "dequant/number_products.h"

#include <algorithm>
#include <cstring>

#include "dequant/dequant.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/kernel_blocks.h"

namespace gguf {
namespace {

constexpr uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

constexpr uint64_t kPartialSums = 64;

/** Columns of a row that are dequantized and multiplied at a time: with kTileRows rows, what stays in the
 * second-level cache. */
constexpr uint64_t kSegment = 4096;
static_assert(kSegment % (kTileSteps * kPartialSums) == 0, "as vectors are packed");

/**
 * Rows longer than this are dequantized one by one, each to its place, which is a cache line further than it
 * need be: lines at the same column of rows a power of two apart would drive each other out of the cache.
 * Shorter rows are dequantized all in one go.
 */
constexpr uint64_t kShortRow = 1024;
constexpr uint64_t kLineFloats = 16;

/** Rows of so few single numbers are multiplied with one vector after the other: adding up the 64 sums of
 * every pair would take a tile longer than to convert the numbers again. */
constexpr uint64_t kFewColumns = 256;
/** Long ones are multiplied with so few vectors a pair at a time, where a set can. */
constexpr uint64_t kFewVectors = 6;
/** So many numbers of such rows stay in the first-level cache from vector to vector. */
constexpr uint64_t kCachedNumbers = 4096;

/** Whether rows are dequantized first: for several vectors, unless that takes longer. */
bool needs_tiles(const FormatKernels& kernels, const Format& format, uint64_t columns, uint64_t n) {
  if (n == 1 || format.block_elements > 1) return n != 1;
  return columns > kFewColumns && (n > kFewVectors || kernels.multiply_pair == nullptr);
}

/** Sums of a tile. */
constexpr uint64_t kSumFloats = kTileRows * kTileVectors * kPartialSums;

/** Vectors of the tile that starts with vector v. */
uint64_t vectors_from(uint64_t v, uint64_t n) {
  return std::min<uint64_t>(kTileVectors, n - v);
}

/** Where step `step` of 64 columns starts, and where its second half does. */
struct Step {
  uint64_t first, second;
};
Step step_at(uint64_t step, bool interleaved) {
  if (!interleaved) return {64 * step, 64 * step + 32};
  const uint64_t first = step / 4 * 256 + step % 4 * 32;
  return {first, first + 128};
}

/** Copies `kLanes` numbers of a vector, zeros where it has ended. */
template <uint64_t kLanes>
void pack_lanes(const float* x, uint64_t column, uint64_t columns, float* packed) {
  if (column + kLanes <= columns) {
    std::memcpy(packed, x + column, kLanes * sizeof *x);
  } else {
    for (uint64_t i = 0; i < kLanes; ++i) packed[i] = column + i < columns ? x[column + i] : 0;
  }
}

/**
 * For tiles: the vectors of a tile; of these, kTileSteps steps of 64 columns; of these, what a pass takes; of
 * that, step by step, the numbers of each vector.
 */
template <uint64_t kLanes>
void pack_for_tiles(const float* x, uint64_t n, uint64_t columns, bool interleaved, float* packed) {
  const uint64_t n_steps = round_up(columns, kPartialSums) / kPartialSums;
  for (uint64_t v = 0; v < n; v += kTileVectors) {
    const uint64_t n_vectors = vectors_from(v, n);
    for (uint64_t start = 0; start < n_steps; start += kTileSteps) {
      const uint64_t end = std::min(start + kTileSteps, n_steps);
      for (uint64_t lane = 0; lane < kPartialSums; lane += kLanes) {
        for (uint64_t step = start; step < end; ++step) {
          const Step at = step_at(step, interleaved);
          const uint64_t column = lane < 32 ? at.first + lane : at.second + (lane - 32);
          for (uint64_t k = v; k < v + n_vectors; ++k, packed += kLanes) {
            pack_lanes<kLanes>(x + k * columns, column, columns, packed);
          }
        }
      }
    }
  }
}

}  // namespace

bool is_interleaved(const Format& format) {
  constexpr bool kInterleaved[] = {
#define FORMAT(name, id, fields) kPutsInterleaved<Block##name>,
#include "dequant/formats.def"
#undef FORMAT
  };
  return kInterleaved[format.index];
}

NumberProducts::NumberProducts(const Format& format, bool big_endian, uint64_t columns, uint64_t n) noexcept
    : format_(format),
      kernels_(active_kernels()),
      big_endian_(big_endian),
      rewrites_(needs_rewriting(format, big_endian)),
      columns_(columns),
      n_(n),
      uses_tiles_(needs_tiles(kernels_.formats[format.index], format, columns, n)),
      padded_(round_up(std::max<uint64_t>(columns, 1), kPartialSums)),
      row_stride_(columns > kShortRow ? std::min(padded_, kSegment) + kLineFloats : padded_),
      n_rows_(std::max<uint64_t>(kSegment / row_stride_, 1) * kTileRows) {}

uint64_t NumberProducts::packed_floats() const noexcept {
  return n_ * padded_;
}

uint64_t NumberProducts::scratch_floats() const noexcept {
  if (!uses_tiles_) {
    return rewrites_ ? (rewritten_bytes(format_, columns_ / format_.block_elements) + 3) / 4 : 0;
  }
  const uint64_t n_tiles = columns_ > kSegment ? (n_ + kTileVectors - 1) / kTileVectors : 1;
  return n_tiles * kSumFloats + n_rows_ * row_stride_;
}

void NumberProducts::pack(const float* x, float* packed, uint64_t part, uint64_t n_parts) const noexcept {
  // Whole tiles of vectors.
  const uint64_t n_tiles = (n_ + kTileVectors - 1) / kTileVectors;
  const uint64_t first = n_tiles * part / n_parts * kTileVectors,
                 end = std::min(n_tiles * (part + 1) / n_parts * kTileVectors, n_);
  if (first >= end) return;
  const uint64_t n = end - first;
  x += first * columns_;
  packed += first * padded_;

  if (!uses_tiles_) {
    for (uint64_t v = 0; v < n; ++v, x += columns_, packed += padded_) {
      std::memcpy(packed, x, static_cast<size_t>(columns_) * sizeof *x);
      std::fill(packed + columns_, packed + padded_, 0.0f);
    }
  } else if (kernels_.lanes == 16) {
    pack_for_tiles<16>(x, n, columns_, is_interleaved(format_), packed);
  } else if (kernels_.lanes == 8) {
    pack_for_tiles<8>(x, n, columns_, is_interleaved(format_), packed);
  } else {
    pack_for_tiles<4>(x, n, columns_, is_interleaved(format_), packed);
  }
}

/** Dequantizes some columns of rows, with zeros after each row, and for the rows that a tile lacks. */
void NumberProducts::fill(const uint8_t* rows, uint64_t n_rows, uint64_t start, uint64_t n_columns,
                          float* numbers) const {
  const uint64_t block = format_.block_elements, row_bytes = columns_ / block * format_.block_bytes;
  const auto numbers_of = [&](const uint8_t* blocks, uint64_t n, float* to) {
    dequantize(format_, Out::kFloat32, Store::kPlain, big_endian_, blocks, n / block, to);
  };
  const auto complete = [&](float* row) {
    std::fill(row + n_columns, row + round_up(n_columns, kPartialSums), 0.0f);
  };
  if (columns_ > kShortRow) {
    const uint8_t* blocks = rows + start / block * format_.block_bytes;
    for (uint64_t r = 0; r < n_rows; ++r, blocks += row_bytes) {
      float* const row = numbers + r * row_stride_;
      numbers_of(blocks, n_columns, row);
      complete(row);
    }
  } else {
    numbers_of(rows, n_rows * columns_, numbers);
    // From the last row on, since each moves up.
    for (uint64_t r = n_rows; r-- > 0 && row_stride_ != columns_;) {
      float* const row = numbers + r * row_stride_;
      std::memmove(row, numbers + r * columns_, static_cast<size_t>(columns_) * sizeof *row);
      complete(row);
    }
  }
  std::fill(numbers + n_rows * row_stride_, numbers + round_up(n_rows, kTileRows) * row_stride_, 0.0f);
}

void NumberProducts::multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch,
                              float* y, uint64_t y_stride) const noexcept {
  if (n_ == 0) return;
  if (uses_tiles_) return multiply_tiles(rows, n_rows, packed, scratch, y, y_stride);

  const Multiplier multiplier = kernels_.formats[format_.index].multiply;
  const PairMultiplier pair_multiplier = kernels_.formats[format_.index].multiply_pair;
  const uint64_t row_blocks = columns_ / format_.block_elements, row_bytes = row_blocks * format_.block_bytes;
  auto* const rewritten = reinterpret_cast<uint8_t*>(scratch);
  const uint64_t n_at_a_time = rewrites_ ? 1
                               : n_ == 1 ? n_rows
                                         : round_up(kCachedNumbers, columns_) / columns_;
  while (n_rows > 0) {
    const uint64_t n_taken = std::min(n_rows, n_at_a_time);
    if (rewrites_) rewrite_blocks(format_, big_endian_, rows, row_blocks, rewritten);
    const uint8_t* const taken = rewrites_ ? rewritten : rows;
    for (uint64_t v = 0; v < n_;) {
      const float* const x = packed + v * padded_;
      if (pair_multiplier != nullptr && v + 2 <= n_) {
        pair_multiplier(taken, n_taken, columns_, x, padded_, y + v * y_stride, y_stride);
        v += 2;
      } else {
        multiplier(taken, n_taken, columns_, x, y + v * y_stride);
        ++v;
      }
    }
    rows += n_taken * row_bytes;
    y += n_taken;
    n_rows -= n_taken;
  }
}

void NumberProducts::multiply_tiles(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch,
                                    float* y, uint64_t y_stride) const {
  const uint64_t row_bytes = columns_ / format_.block_elements * format_.block_bytes;
  Tile tile{};
  tile.row_stride = row_stride_;
  if (is_interleaved(format_)) {
    tile.half_offset = 128;
    tile.step_stride = 32;
    tile.steps_per_run = 4;
    tile.run_stride = 256;
  } else {
    tile.half_offset = 32;
    tile.step_stride = 64;
    tile.steps_per_run = kTileSteps;
  }
  tile.y_stride = y_stride;
  float* const numbers = scratch;
  float* const sums = scratch + n_rows_ * row_stride_;
  while (n_rows > 0) {
    const uint64_t n_filled = std::min(n_rows, n_rows_);
    for (uint64_t start = 0; start < columns_; start += kSegment) {
      const uint64_t n_columns = std::min(kSegment, columns_ - start);
      fill(rows, n_filled, start, n_columns, numbers);
      tile.starts = start == 0;
      tile.ends = start + n_columns == columns_;
      tile.n_steps = round_up(n_columns, kPartialSums) / kPartialSums;
      for (uint64_t v = 0; v < n_; v += kTileVectors) {
        const uint64_t n_vectors = vectors_from(v, n_);
        tile.x = packed + v * padded_ + start * n_vectors;
        tile.sums = columns_ > kSegment ? sums + v / kTileVectors * kSumFloats : sums;
        for (uint64_t r = 0; r < n_filled; r += kTileRows) {
          tile.w = numbers + r * row_stride_;
          tile.n_rows = std::min<uint64_t>(kTileRows, n_filled - r);
          tile.y = y + v * y_stride + r;
          kernels_.tiles[n_vectors - 1](tile);
        }
      }
    }
    rows += n_filled * row_bytes;
    y += n_filled;
    n_rows -= n_filled;
  }
}

}  // namespace gguf
