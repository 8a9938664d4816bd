// The products of 32 rows of levels with up to 16 vectors of int8 by AMX: multiply_code_tile of
// sinks/code_tile.h with tiles, in the same order. Included after the primitives of AVX-512, in a target
// region that has amx-tile and amx-int8, too.
//
// For each run there are three tiles: the bytes of the vectors, one vector in a row; the words of the rows of
// levels, 16 rows at a time; and their sums, a row for each vector. Sums go through memory to the registers
// that scale them. Tiles and memory are used in turn: while a run is scaled, the sums of the next one are
// stored, and the one after that is multiplied.
#pragma once

#include "dequant/isa/amx_table.h"
#include "dequant/sinks/code_tile.h"

namespace gguf {
namespace {

constexpr int kAmxVectors = 16;

/** What ldtilecfg loads: tiles 0 and 1 are sums, 2 and 3 vectors, 4 and 5 levels. */
struct AmxConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  explicit AmxConfig(int n_vectors) {
    for (int i = 0; i < 2; ++i) {
      set(i, n_vectors, 64);
      set(2 + i, n_vectors, kAmxRun);
      set(4 + i, kAmxRun / 4, 64);
    }
  }

 private:
  void set(int tile, int n_rows, int n_bytes) {
    rows[tile] = static_cast<uint8_t>(n_rows);
    row_bytes[tile] = static_cast<uint16_t>(n_bytes);
  }
};
static_assert(sizeof(AmxConfig) == 64, "as the instruction reads it");

/** Of a run of levels; of a word of all rows; of a run of all rows. */
constexpr int kRun = kAmxRun, kWordBytes = 4 * kCodeRows, kRunBytes = kRun * kCodeRows;

/** Sums of products of a run: [vector][row]. */
using AmxSums = int32_t[kAmxVectors][16];

/** Multiplies a run; levels have no sign. Numbers of tiles are part of instructions. */
GGUF_INLINE void multiply_amx_run(const uint8_t* w, const uint8_t* x, bool odd) {
  if (odd) {
    _tile_zero(1);
    _tile_loadd(3, x, kRun);
    _tile_loadd(5, w, kWordBytes);
    _tile_dpbsud(1, 3, 5);
  } else {
    _tile_zero(0);
    _tile_loadd(2, x, kRun);
    _tile_loadd(4, w, kWordBytes);
    _tile_dpbsud(0, 2, 4);
  }
}

GGUF_INLINE void store_amx_run(bool odd, AmxSums (&sums)[2]) {
  if (odd) {
    _tile_stored(1, sums[1], 64);
  } else {
    _tile_stored(0, sums[0], 64);
  }
}

/** Of the 16 rows of register `k`. kWhole: there are 16 vectors. */
template <bool kWhole>
void multiply_amx_rows(const CodeTile& t, int k) {
  const int n_vectors = kWhole ? kAmxVectors : static_cast<int>(t.n_vectors);
  const int x_bytes = n_vectors * (kRun + 8), first_row = k * simd::kLanes;
  alignas(64) AmxSums products[2];
  const uint8_t *w = t.w + 4 * first_row, *x = t.x;
  const uint8_t* const places = places_of_sums(t);
  uint64_t n_left = t.n_runs;
  bool odd = false;
  if (n_left > 0) {
    multiply_amx_run(w, x, false);
    store_amx_run(false, products);
  }
  if (n_left > 1) multiply_amx_run(w + kRunBytes, x + x_bytes, true);
  for (uint64_t step = 0; step < 16; ++step) {
    float* const sums = t.sums + places[step] * static_cast<uint64_t>(n_vectors * kCodeRows) + first_row;
    simd::Lanes sum[kAmxVectors] = {};
    if (!t.starts) {
      GGUF_UNROLL
      for (int v = 0; v < kAmxVectors; ++v) {
        if (v < n_vectors) sum[v] = simd::load_lanes(sums + v * kCodeRows);
      }
    }
    for (uint64_t r = kSumOrder[step]; r < t.n_runs; r += 16, w += kRunBytes, x += x_bytes, odd = !odd) {
      --n_left;
      if (n_left > 0) store_amx_run(!odd, products);
      if (n_left > 1) multiply_amx_run(w + 2 * kRunBytes, x + 2 * x_bytes, odd);
      const AmxSums& own = products[odd ? 1 : 0];
      const uint8_t* const scales = x + kRun * n_vectors;
      const uint8_t* const offsets = scales + 4 * n_vectors;
      const simd::Lanes d = simd::load_lanes(t.scales + r * kCodeRows + first_row);
      GGUF_UNROLL
      for (int v = 0; v < kAmxVectors; ++v) {
        if (v >= n_vectors) continue;
        simd::IntLanes ints{_mm512_load_si512(own[v])};
        if (!t.affine) ints.x = _mm512_add_epi32(ints.x, simd::broadcast_int(offsets + 4 * v).x);
        const simd::Lanes scale = simd::mul(d, simd::broadcast(scales + 4 * v));
        sum[v] = simd::add(sum[v], simd::mul(scale, simd::to_lanes(ints)));
      }
      if (t.affine) {
        const simd::Lanes m = simd::load_lanes(t.minima + r * kCodeRows + first_row);
        GGUF_UNROLL
        for (int v = 0; v < kAmxVectors; ++v) {
          if (v >= n_vectors) continue;
          sum[v] = simd::add(sum[v], simd::mul(m, simd::broadcast(offsets + 4 * v)));
        }
      }
    }
    for_sums_to_add(t, places, step, static_cast<uint64_t>(n_vectors * kCodeRows),
                    [&](const float* before) GGUF_INLINE_LAMBDA {
                      GGUF_UNROLL
                      for (int v = 0; v < kAmxVectors; ++v) {
                        if (v < n_vectors)
                          sum[v] = simd::add(simd::load_lanes(before + v * kCodeRows + first_row), sum[v]);
                      }
                    });
    GGUF_UNROLL
    for (int v = 0; v < kAmxVectors; ++v) {
      if (v < n_vectors) simd::store_lanes(sums + v * kCodeRows, sum[v]);
    }
  }
}

/** A CodeTileMultiplier of kernel_table.h, with whole runs of vectors. */
template <bool kWhole>
void multiply_amx_tile(const CodeTile& t) {
  for (int k = 0; k < simd::kRowRegisters; ++k) multiply_amx_rows<kWhole>(t, k);
  end_code_tile(t, kWhole ? kAmxVectors : static_cast<int>(t.n_vectors));
}

constexpr CodeTileMultipliers amx_tiles() {
  CodeTileMultipliers tiles{};
  for (int v = 1; v < kAmxVectors; ++v) tiles.of[v - 1] = multiply_amx_tile<false>;
  tiles.of[kAmxVectors - 1] = multiply_amx_tile<true>;
  return tiles;
}

/** The configuration that a thread had. Other code of the process may rely on it: ggml's products configure
 * tiles once for each thread, and are an illegal instruction without. */
thread_local AmxConfig amx_config_before(0);

/** As LevelTiles has it: together with giving it back, it takes as long as eleven products of tiles. */
inline void configure_amx(uint64_t n_vectors, bool is_first) {
  if (is_first) _tile_storeconfig(&amx_config_before);
  AmxConfig config(static_cast<int>(n_vectors));
  GGUF_KEEP_IN_MEMORY(config);  // GCC thinks that only its first bytes are read
  _tile_loadconfig(&config);
}

inline void restore_amx() {
  GGUF_KEEP_IN_MEMORY(amx_config_before);
  if (amx_config_before.palette == 0) {
    _tile_release();
  } else {
    _tile_loadconfig(&amx_config_before);
  }
}

constexpr AmxTiles kAmxTiles = {amx_tiles(), configure_amx, restore_amx};

}  // namespace
}  // namespace gguf
