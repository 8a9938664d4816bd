// The products of a few rows of levels with a few vectors of int8: steps 2 and 3 of the rule of
// integer_products.h. A lane is a row; the runs come in the order of the partial sums that they go to, so
// that one sum for each vector is enough.
#pragma once

#include <utility>

#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/kernel.h"
#include "dequant/sinks/code_sink.h"

namespace gguf {
namespace {

/** The rows of a tile. */
constexpr int kCodeRows = simd::kRowRegisters * simd::kLanes;

/** Where the partial sums of a step are, counted in tiles of sums. Only segments of long rows keep all 16 of
 * them; of a whole row, those that wait to be added up are a stack, which stays in the cache: after a step,
 * as many as the number of steps done has ones. */
inline const uint8_t* places_of_sums(const CodeTile& t) {
  static constexpr uint8_t kPlaces[2][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                             {0, 0, 1, 0, 1, 1, 2, 0, 1, 1, 2, 1, 2, 2, 3, 0}};
  return kPlaces[t.starts && t.ends ? 1 : 0];
}

/** Calls use(sums before), latest first, for those that are to be added to the partial sums of this step: two
 * of them make one of 8, two of these one of 4, and so on. Each is where its last step has stored it. */
template <class Use>
GGUF_INLINE void for_sums_to_add(const CodeTile& t, const uint8_t* places, uint64_t step, uint64_t n_sums,
                                 Use use) {
  if (!t.ends) return;
  for (uint64_t back = 1; (step & back) != 0; back *= 2) use(t.sums + places[step - back] * n_sums);
}

/** Writes the products, which the last step has stored. */
GGUF_INLINE void end_code_tile(const CodeTile& t, int n_vectors) {
  if (!t.ends) return;
  const float* products = t.sums + places_of_sums(t)[15] * static_cast<uint64_t>(n_vectors * kCodeRows);
  float* y = t.y;
  for (int v = 0; v < n_vectors; ++v, products += kCodeRows, y += t.y_stride) {
    if (t.n_rows == kCodeRows) {
      GGUF_UNROLL
      for (int i = 0; i < kCodeRows; i += simd::kLanes) {
        simd::store_lanes(y + i, simd::load_lanes(products + i));
      }
    } else {
      std::memcpy(y, products, static_cast<size_t>(t.n_rows) * sizeof(float));
    }
  }
}

/** kAffine is t.affine: with few registers, a compiler must know which values are not needed. */
template <int kRun, int kKind, int kVectors, bool kAffine>
GGUF_INLINE void multiply_tile_runs(const CodeTile& t) {
  constexpr int kRunBytes = kRun * simd::kLevelBytes<kKind>;
  constexpr int kLanes = simd::kLanes, kRegisters = simd::kRowRegisters;
  const uint8_t *w = t.w, *x = t.x, *places = places_of_sums(t);
  for (uint64_t step = 0; step < 16; ++step) {
    float* const sums = t.sums + places[step] * uint64_t{kVectors * kCodeRows};
    simd::Lanes sum[kVectors][kRegisters] = {};
    if (!t.starts) {
      GGUF_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        GGUF_UNROLL
        for (int k = 0; k < kRegisters; ++k) {
          sum[v][k] = simd::load_lanes(sums + v * kCodeRows + k * kLanes);
        }
      }
    }
    for (uint64_t r = kSumOrder[step]; r < t.n_runs; r += 16, w += kRunBytes * kCodeRows) {
      const uint8_t* const scales = x + kRunBytes * kVectors;
      const uint8_t* const offsets = scales + 4 * kVectors;
      simd::IntLanes ints[kVectors][kRegisters] = {};
      if constexpr (!simd::kSignedTiles && !kAffine) {
        GGUF_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          GGUF_UNROLL
          for (int k = 0; k < kRegisters; ++k) ints[v][k] = simd::broadcast_int(offsets + 4 * v);
        }
      }
      simd::multiply_run<kRun, kKind, kVectors>(w, x, ints);
      GGUF_UNROLL
      for (int k = 0; k < kRegisters; ++k) {
        const simd::Lanes d = simd::load_lanes(t.scales + r * kCodeRows + k * kLanes);
        GGUF_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          const simd::Lanes scale = simd::mul(d, simd::broadcast(scales + 4 * v));
          sum[v][k] = simd::add(sum[v][k], simd::mul(scale, simd::to_lanes(ints[v][k])));
        }
        if constexpr (kAffine) {
          const simd::Lanes m = simd::load_lanes(t.minima + r * kCodeRows + k * kLanes);
          GGUF_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            sum[v][k] = simd::add(sum[v][k], simd::mul(m, simd::broadcast(offsets + 4 * v)));
          }
        }
      }
      x = offsets + 4 * kVectors;
    }
    for_sums_to_add(t, places, step, kVectors * kCodeRows, [&](const float* before) GGUF_INLINE_LAMBDA {
      GGUF_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        GGUF_UNROLL
        for (int k = 0; k < kRegisters; ++k) {
          sum[v][k] = simd::add(simd::load_lanes(before + v * kCodeRows + k * kLanes), sum[v][k]);
        }
      }
    });
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      GGUF_UNROLL
      for (int k = 0; k < kRegisters; ++k) {
        simd::store_lanes(sums + v * kCodeRows + k * kLanes, sum[v][k]);
      }
    }
  }
}

/** A CodeTileMultiplier of kernel_table.h. */
template <int kRun, int kKind, int kVectors>
void multiply_code_tile(const CodeTile& t) {
  if constexpr (kHasMinima<kRun, kKind>) {
    if (t.affine) {
      multiply_tile_runs<kRun, kKind, kVectors, true>(t);
      return end_code_tile(t, kVectors);
    }
  }
  multiply_tile_runs<kRun, kKind, kVectors, false>(t);
  end_code_tile(t, kVectors);
}

/** None for one vector where that is multiplied in kernels. */
template <int kRun, int kKind, int kVectors>
constexpr CodeTileMultiplier code_tile() {
  if constexpr (kVectors > 1 || !simd::kMultipliesCodesInKernels) {
    return multiply_code_tile<kRun, kKind, kVectors>;
  } else {
    return nullptr;
  }
}

template <int kRun, int kKind, int... kVectors>
constexpr CodeTileMultipliers code_tiles_of(std::integer_sequence<int, kVectors...>) {
  return {{code_tile<kRun, kKind, kVectors + 1>()...}};
}

/** For one vector, two, and so on. */
template <int kRun, int kKind>
constexpr CodeTileMultipliers code_tiles() {
  return code_tiles_of<kRun, kKind>(std::make_integer_sequence<int, simd::kByteVectors>());
}

/** Words of levels and scales of kCodeRows rows, in the order in which a tile takes them: a RowTransposer of
 * kernel_table.h. */
template <int kWords>
void transpose_rows(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  simd::transpose<kWords>(rows, stride, to);
}

}  // namespace
}  // namespace gguf
