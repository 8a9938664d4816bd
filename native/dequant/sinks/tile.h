// The product of a few rows of numbers with a few vectors: a tile of sums that stay in registers.
//
// A tile has 64 partial sums for each pair of a row and a vector (the rule of products.h), far more than
// there are registers. So it works on kLanes of the 64 at a time, the same ones of every pair: a pass. A pass
// takes from every 64 numbers those that belong to its partial sums.
#pragma once

#include "dequant/isa/kernel_table.h"
#include "dequant/sinks/dot_sink.h"

namespace gguf {
namespace {

/** Rows of a tile for this many vectors: as many as there are registers for, in a number that divides
 * kTileRows. */
constexpr int tile_rows(int n_vectors) {
  int rows = kTileRows;
  while (rows * n_vectors > simd::kTileSums || kTileRows % rows != 0) --rows;
  return rows;
}

GGUF_INLINE simd::Lanes load_row(const float* step, const Tile& t, int r) {
  return simd::load_lanes(step + static_cast<uint64_t>(r) * t.row_stride);
}

/** One pass: `w` and `x` are at its first numbers. Sums of a pair are 64 apart, and come from and go to
 * memory. */
template <int kRows, int kVectors>
GGUF_INLINE void multiply_pass(const float* w, const Tile& t, uint64_t n_steps, const float* x, float* sums,
                               bool is_first) {
  simd::Lanes sum[kRows][kVectors] = {};
  if (!is_first) {
    GGUF_UNROLL
    for (int r = 0; r < kRows; ++r) {
      GGUF_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = simd::load_lanes(sums + (r * kVectors + v) * 64);
    }
  }
  for (uint64_t n_run = t.steps_per_run; n_steps > 0; n_steps -= n_run, w += t.run_stride) {
    if (n_run > n_steps) n_run = n_steps;
    const float* step = w;
    for (uint64_t i = 0; i < n_run; ++i, step += t.step_stride, x += kVectors * simd::kLanes) {
      if constexpr (kRows < kVectors) {
        simd::Lanes row[kRows];
        GGUF_UNROLL
        for (int r = 0; r < kRows; ++r) row[r] = load_row(step, t, r);
        GGUF_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          const simd::Lanes vector = simd::load_lanes(x + v * simd::kLanes);
          GGUF_UNROLL
          for (int r = 0; r < kRows; ++r) {
            sum[r][v] = simd::fma(row[r], vector, sum[r][v]);
          }
        }
      } else {
        simd::Lanes vector[kVectors];
        GGUF_UNROLL
        for (int v = 0; v < kVectors; ++v) vector[v] = simd::load_lanes(x + v * simd::kLanes);
        GGUF_UNROLL
        for (int r = 0; r < kRows; ++r) {
          const simd::Lanes row = load_row(step, t, r);
          GGUF_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            sum[r][v] = simd::fma(row, vector[v], sum[r][v]);
          }
        }
      }
    }
  }
  GGUF_UNROLL
  for (int r = 0; r < kRows; ++r) {
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) simd::store_lanes(sums + (r * kVectors + v) * 64, sum[r][v]);
  }
}

/** A TileMultiplier of kernel_table.h. */
template <int kVectors>
void multiply_tile(const Tile& t) {
  constexpr int kRows = tile_rows(kVectors), kPasses = 64 / simd::kLanes;
  const float* x = t.x;
  for (uint64_t step = 0; step < t.n_steps; step += kTileSteps) {
    const uint64_t n_steps = t.n_steps - step < kTileSteps ? t.n_steps - step : kTileSteps;
    for (uint64_t r = 0; r < t.n_rows; r += kRows) {
      const float* const w = t.w + r * t.row_stride + 64 * step;
      for (int pass = 0; pass < kPasses; ++pass) {
        const int lane = pass * simd::kLanes;
        multiply_pass<kRows, kVectors>(
            w + (lane < 32 ? lane : t.half_offset + static_cast<uint64_t>(lane - 32)), t, n_steps,
            x + static_cast<uint64_t>(lane) * kVectors * n_steps, t.sums + r * kVectors * 64 + lane,
            t.starts && step == 0);
      }
    }
    x += n_steps * 64 * kVectors;
  }
  if (!t.ends) return;
  alignas(64) float row_sums[SixteenRows::kFloats];
  for (uint64_t v = 0; v < kVectors; ++v) {
    for (uint64_t r = 0; r < t.n_rows; ++r) {
      const float* const sums = t.sums + (r * kVectors + v) * 64;
      SixteenRows::keep(row_sums, r, simd::load_f32(sums), simd::load_f32(sums + 16),
                        simd::load_f32(sums + 32), simd::load_f32(sums + 48));
    }
    SixteenRows::add_up(row_sums, t.n_rows, t.y + v * t.y_stride);
  }
}

}  // namespace
}  // namespace gguf
