// The instructions of AMX that isa/amx_tile.h uses, in plain C++ with every check that the processor makes,
// and more: for machines without AMX. Included after the system's intrinsics and before amx_tile.h.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace gguf::test::amx {

/** What a processor has for each thread. */
struct State {
  bool configured = false;
  int rows[8] = {}, row_bytes[8] = {};
  uint8_t tile[8][16][64] = {};
  uint64_t n_products = 0;  // how many instructions have multiplied
};
inline State state;

inline bool is_configured(int tile) {
  const bool is = state.configured && tile >= 0 && tile < 8 && state.rows[tile] > 0;
  EXPECT_TRUE(is) << "tile " << tile << " is not configured";
  return is;
}

inline void store_config(void* to) {
  uint8_t bytes[64] = {};
  if (state.configured) {
    bytes[0] = 1;
    for (int tile = 0; tile < 8; ++tile) {
      bytes[16 + 2 * tile] = static_cast<uint8_t>(state.row_bytes[tile]);
      bytes[48 + tile] = static_cast<uint8_t>(state.rows[tile]);
    }
  }
  std::memcpy(to, bytes, sizeof bytes);
}

inline void load_config(const void* from) {
  uint8_t bytes[64];
  std::memcpy(bytes, from, sizeof bytes);
  EXPECT_EQ(bytes[0], 1) << "palette";
  for (int i = 1; i < 16; ++i) EXPECT_EQ(bytes[i], 0) << "reserved byte " << i;
  for (int tile = 0; tile < 16; ++tile) {
    const int row_bytes = bytes[16 + 2 * tile] | bytes[17 + 2 * tile] << 8, rows = bytes[48 + tile];
    ASSERT_LE(rows, tile < 8 ? 16 : 0) << "rows of tile " << tile;
    ASSERT_LE(row_bytes, tile < 8 ? 64 : 0) << "bytes of a row of tile " << tile;
    ASSERT_EQ(rows == 0, row_bytes == 0) << "tile " << tile;
    if (tile >= 8) continue;
    state.rows[tile] = rows;
    state.row_bytes[tile] = row_bytes;
  }
  // What is in tiles is zero on a processor. Other bytes show what relies on it.
  std::memset(state.tile, 0x5a, sizeof state.tile);
  state.configured = true;
}

inline void release() {
  EXPECT_TRUE(state.configured);
  state.configured = false;
}

inline void zero(int tile) {
  if (is_configured(tile)) std::memset(state.tile[tile], 0, sizeof state.tile[tile]);
}

/** Rows and bytes beyond the configured ones become zero. */
inline void load(int tile, const void* from, int64_t stride) {
  if (!is_configured(tile)) return;
  zero(tile);
  for (int row = 0; row < state.rows[tile]; ++row) {
    std::memcpy(state.tile[tile][row], static_cast<const uint8_t*>(from) + row * stride,
                static_cast<size_t>(state.row_bytes[tile]));
  }
}

inline void store(int tile, void* to, int64_t stride) {
  if (!is_configured(tile)) return;
  for (int row = 0; row < state.rows[tile]; ++row) {
    std::memcpy(static_cast<uint8_t*>(to) + row * stride, state.tile[tile][row],
                static_cast<size_t>(state.row_bytes[tile]));
  }
}

/** sums[m][n] += the products of four int8 of a[m] with four bytes without a sign of b, for each k: a has
 * groups of four in its rows, b in its columns. */
inline void multiply_signed_unsigned(int sums, int a, int b) {
  if (!is_configured(sums) || !is_configured(a) || !is_configured(b)) return;
  ++state.n_products;
  ASSERT_TRUE(sums != a && sums != b && a != b) << "an invalid instruction";
  ASSERT_EQ(state.rows[sums], state.rows[a]);
  ASSERT_EQ(state.row_bytes[sums], state.row_bytes[b]);
  ASSERT_EQ(state.row_bytes[a], 4 * state.rows[b]);
  for (int m = 0; m < state.rows[sums]; ++m) {
    for (int n = 0; n < state.row_bytes[sums] / 4; ++n) {
      int32_t sum;
      std::memcpy(&sum, &state.tile[sums][m][4 * n], 4);
      for (int k = 0; k < state.row_bytes[a]; ++k) {
        sum += static_cast<int8_t>(state.tile[a][m][k]) * state.tile[b][k / 4][4 * n + k % 4];
      }
      std::memcpy(&state.tile[sums][m][4 * n], &sum, 4);
    }
  }
}

}  // namespace gguf::test::amx

// Macros in some compilers.
#undef _tile_loadconfig
#undef _tile_storeconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbsud
#define _tile_loadconfig gguf::test::amx::load_config
#define _tile_storeconfig gguf::test::amx::store_config
#define _tile_release gguf::test::amx::release
#define _tile_zero gguf::test::amx::zero
#define _tile_loadd gguf::test::amx::load
#define _tile_stored gguf::test::amx::store
#define _tile_dpbsud gguf::test::amx::multiply_signed_unsigned
