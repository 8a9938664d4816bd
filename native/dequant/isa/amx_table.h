// The table of the set avx512_amx, and the test of its tiles before they are used. It is outside of target
// regions, since a table is made on every machine.
#pragma once

#include <cstring>

#include "dequant/isa/kernel_table.h"

namespace gguf {

/** Levels of a run. Shorter ones have twice the sums that go through memory: AVX-512 is faster. */
constexpr uint64_t kAmxRun = 32;

struct AmxTiles {
  CodeTileMultipliers of;  // for runs of kAmxRun
  void (*start)(uint64_t n_vectors, bool is_first);
  void (*finish)();
};

inline KernelTable amx_table(const AmxTiles& tiles, bool (*is_ready)()) {
  KernelTable table = *kAvx512Kernels;
  table.isa = "avx512_amx";
  table.base = kAvx512Kernels;
  const LevelTiles& base = table.base->level_tiles;
  table.level_tiles = {
      {{}, {tiles.of}},     base.rows, 16, 32, {base.transpose[0], base.transpose[1], base.transpose[2]},
      base.transpose_scales};
  table.level_tiles.start = tiles.start;
  table.level_tiles.finish = tiles.finish;
  table.n_wanted = 32;          // a tile takes as long for few vectors
  table.columns_wanted = 1024;  // sums of shorter rows are added up most of the time
  table.is_ready = is_ready;
  return table;
}

/** Multiplies 16 runs of any levels and codes with all scales 1: then sums are exact. */
inline bool amx_tile_is_right(const AmxTiles& tiles, uint64_t n_vectors) {
  constexpr uint64_t kRows = 32, kRuns = 16, kVectors = 16, run = kAmxRun;
  uint8_t w[kRuns * run * kRows], x[kRuns * (run + 8) * kVectors];
  float ones[kRuns * kRows], sums[16 * kVectors * kRows], y[kVectors * kRows],
      expected[kVectors * kRows] = {};
  for (float& one : ones) one = 1;
  uint32_t random = 1;
  const auto next = [&random] {
    return static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
  };
  for (uint64_t r = 0; r < kRuns; ++r) {
    uint8_t *const levels = w + r * run * kRows, *const codes = x + r * (run + 8) * n_vectors;
    for (uint64_t i = 0; i < run * kRows; ++i) levels[i] = next();
    for (uint64_t i = 0; i < run * n_vectors; ++i) codes[i] = next();
    for (uint64_t v = 0; v < n_vectors; ++v) {
      const int32_t correction = next() - 128;
      std::memcpy(codes + n_vectors * run + 4 * v, ones, 4);
      std::memcpy(codes + n_vectors * (run + 4) + 4 * v, &correction, 4);
      for (uint64_t row = 0; row < kRows; ++row) {
        int32_t sum = correction;
        for (uint64_t i = 0; i < run; ++i) {
          sum += levels[4 * kRows * (i / 4) + 4 * row + i % 4] * static_cast<int8_t>(codes[run * v + i]);
        }
        expected[kRows * v + row] += static_cast<float>(sum);
      }
    }
  }
  CodeTile tile{};
  tile.w = w;
  tile.n_runs = kRuns;
  tile.scales = ones;
  tile.x = x;
  tile.sums = sums;
  tile.starts = tile.ends = true;
  tile.y = y;
  tile.y_stride = tile.n_rows = kRows;
  tile.n_vectors = n_vectors;
  tiles.start(n_vectors, true);
  tiles.of.of[n_vectors - 1](tile);
  tiles.finish();
  return std::memcmp(y, expected, static_cast<size_t>(n_vectors) * kRows * sizeof(float)) == 0;
}

inline bool amx_tiles_are_right(const AmxTiles& tiles) {
  return amx_tile_is_right(tiles, 7) && amx_tile_is_right(tiles, 16);
}

}  // namespace gguf
