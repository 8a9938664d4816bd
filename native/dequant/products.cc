#include "dequant/products.h"

#include <algorithm>
#include <cstring>

#include "dequant/block_fields.h"
#include "dequant/isa/kernel_table.h"

namespace gguf {
namespace {

constexpr uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

constexpr uint64_t kPartialSums = 64;

/** Numbers of rows that are dequantized before they are multiplied: what stays in the second-level cache. */
constexpr uint64_t kTileFloats = 48 << 10;

/**
 * Rows longer than this are dequantized one by one, each to its place, which is a cache line further than it
 * need be: lines at the same column of rows a power of two apart would drive each other out of the cache.
 * Shorter rows are dequantized all in one go.
 */
constexpr uint64_t kShortRow = 1024;

/** Sums of a tile: before the rows in scratch. */
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

}  // namespace

bool is_interleaved(const Format& format) {
  const size_t index = format.index;
  return index == kQ2_K || index == kQ3_K || index == kTQ2_0;
}

Products::Products(const Format& format, bool big_endian, uint64_t columns, uint64_t n) noexcept
    : format_(format),
      kernels_(active_kernels()),
      swaps_(big_endian && has_byte_order(format)),
      columns_(columns),
      n_(n),
      padded_(round_up(columns, kPartialSums)),
      row_stride_(columns > kShortRow ? padded_ + 16 : padded_) {}

uint64_t Products::packed_floats() const noexcept {
  return n_ * padded_;
}

uint64_t Products::rows_of_tile() const {
  return std::max<uint64_t>(kTileFloats / row_stride_ / kTileRows * kTileRows, kTileRows);
}

uint64_t Products::scratch_floats() const noexcept {
  return uses_tiles() ? kSumFloats + rows_of_tile() * row_stride_ : 0;
}

// For tiles: the vectors of a tile; of these, kTileSteps steps of 64 columns; of these, what a pass takes; of
// that, step by step, the numbers of each vector.
void Products::pack(const float* x, float* packed) const noexcept {
  if (!uses_tiles()) {
    std::memcpy(packed, x, columns_ * sizeof *x);
    std::fill(packed + columns_, packed + padded_, 0.0f);
    return;
  }
  const bool interleaved = is_interleaved(format_);
  const auto lanes = static_cast<uint64_t>(kernels_.lanes);
  const uint64_t n_steps = padded_ / kPartialSums;
  for (uint64_t v = 0; v < n_; v += kTileVectors) {
    const uint64_t n_vectors = vectors_from(v, n_);
    for (uint64_t start = 0; start < n_steps; start += kTileSteps) {
      const uint64_t end = std::min(start + kTileSteps, n_steps);
      for (uint64_t lane = 0; lane < kPartialSums; lane += lanes) {
        for (uint64_t step = start; step < end; ++step) {
          const Step at = step_at(step, interleaved);
          const uint64_t column = lane < 32 ? at.first + lane : at.second + (lane - 32);
          const uint64_t n_there = column < columns_ ? std::min(lanes, columns_ - column) : 0;
          for (uint64_t k = v; k < v + n_vectors; ++k, packed += lanes) {
            if (n_there > 0) std::memcpy(packed, x + k * columns_ + column, n_there * sizeof *x);
            std::fill(packed + n_there, packed + lanes, 0.0f);
          }
        }
      }
    }
  }
}

/** Dequantizes rows to `tile`, row_stride_ apart, with zeros after each and for the rows that a tile lacks.
 */
void Products::fill_tile(const uint8_t* rows, uint64_t n_rows, float* tile) const {
  const uint64_t n_blocks = columns_ / format_.block_elements, row_bytes = n_blocks * format_.block_bytes;
  if (columns_ <= kShortRow) {
    dequantize(format_, Out::kFloat32, Store::kPlain, swaps_, rows, n_rows * n_blocks, tile);
    for (uint64_t r = n_rows; columns_ < row_stride_ && r-- > 0;) {
      std::memmove(tile + r * row_stride_, tile + r * columns_, columns_ * sizeof *tile);
      std::fill(tile + r * row_stride_ + columns_, tile + (r + 1) * row_stride_, 0.0f);
    }
  } else {
    for (uint64_t r = 0; r < n_rows; ++r) {
      float* const row = tile + r * row_stride_;
      dequantize(format_, Out::kFloat32, Store::kPlain, swaps_, rows + r * row_bytes, n_blocks, row);
      std::fill(row + columns_, row + row_stride_, 0.0f);
    }
  }
  std::fill(tile + n_rows * row_stride_, tile + round_up(n_rows, kTileRows) * row_stride_, 0.0f);
}

void Products::multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                        uint64_t y_stride) const noexcept {
  if (n_ == 0) return;
  if (!uses_tiles()) return kernels_.multipliers[format_.index](rows, n_rows, columns_, packed, y);

  const uint64_t row_bytes = columns_ / format_.block_elements * format_.block_bytes;
  Tile tile{};
  tile.row_stride = row_stride_;
  tile.n_steps = padded_ / kPartialSums;
  if (is_interleaved(format_)) {
    tile.half_offset = 128;
    tile.step_stride = 32;
    tile.steps_per_run = 4;
    tile.run_stride = 256;
  } else {
    tile.half_offset = 32;
    tile.step_stride = 64;
    tile.steps_per_run = tile.n_steps;
  }
  tile.sums = scratch;
  tile.y_stride = y_stride;
  float* const numbers = scratch + kSumFloats;
  while (n_rows > 0) {
    const uint64_t n_filled = std::min(n_rows, rows_of_tile());
    fill_tile(rows, n_filled, numbers);
    for (uint64_t v = 0; v < n_; v += kTileVectors) {
      const uint64_t n_vectors = vectors_from(v, n_);
      tile.x = packed + v * padded_;
      for (uint64_t r = 0; r < n_filled; r += kTileRows) {
        tile.w = numbers + r * row_stride_;
        tile.n_rows = std::min<uint64_t>(kTileRows, n_filled - r);
        tile.y = y + v * y_stride + r;
        kernels_.tiles[n_vectors - 1](tile);
      }
    }
    rows += n_filled * row_bytes;
    y += n_filled;
    n_rows -= n_filled;
  }
}

}  // namespace gguf
