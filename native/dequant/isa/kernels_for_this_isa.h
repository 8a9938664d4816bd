// The common part of all instruction sets. Each file of isa/ includes this once, inside its target region and
// after its header of simd/. It compiles every kernel for that set and defines their table, `kThisIsa`.
//
// Everything here, in kernels/ and in sinks/ is in an unnamed namespace. Otherwise the linker would merge
// functions with the same name, and one set would run the instructions of another.
#pragma once

#include "dequant/activations.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/numbers.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"
#include "dequant/sinks/code_dot.h"
#include "dequant/sinks/code_sink.h"
#include "dequant/sinks/code_tile.h"
#include "dequant/sinks/code_transpose.h"
#include "dequant/sinks/dot_sink.h"
#include "dequant/sinks/measure.h"
#include "dequant/sinks/store_sink.h"
#include "dequant/sinks/tile.h"

namespace gguf {
namespace {

/**
 * Dequantizes to 16-bit outputs, which have no kernels of their own: numbers are made in the first-level
 * cache and converted there.
 */
template <Out kOut, Store kStore>
void convert_numbers(const float* x, uint64_t n, uint16_t* y) {
  constexpr uint64_t kCount = simd::kConverted;
  for (; n >= kCount; n -= kCount, x += kCount, y += kCount) simd::convert<kOut, kStore>(y, x);
  if (n > 0) {
    alignas(64) float last[kCount] = {};
    alignas(64) uint16_t converted[kCount];
    std::memcpy(last, x, static_cast<size_t>(n) * sizeof *x);
    simd::convert<kOut, Store::kPlain>(converted, last);
    std::memcpy(y, converted, static_cast<size_t>(n) * sizeof *y);
  }
}

void end_stores() {
  simd::store_fence();
}

/** Streaming stores if the set has them. */
constexpr Store kStreaming = simd::kStreams ? Store::kStreaming : Store::kPlain;

template <class Block>
constexpr FormatKernels format_kernels() {
  FormatKernels kernels{};
  kernels.store[static_cast<int>(Store::kPlain)] = store_blocks<Block, Store::kPlain>;
  kernels.store[static_cast<int>(Store::kStreaming)] = store_blocks<Block, kStreaming>;
  kernels.multiply = multiply_rows<Block>;
  if constexpr (Block::kElements == 1) {
    kernels.multiply_pair = pair_multiplier<Block>();
  } else {
    take_multipliers<Block>(kernels);
    take_unpackers<Block>(kernels);
    kernels.code_facts = find_code_facts<Block>;
  }
  return kernels;
}

template <int... kKinds>
constexpr LevelTiles level_tiles(std::integer_sequence<int, kKinds...>) {
  LevelTiles tiles{};
  ((tiles.of[0][kKinds] = code_tiles<16, kKinds>(), tiles.of[1][kKinds] = code_tiles<32, kKinds>()), ...);
  tiles.rows = kCodeRows;
  tiles.vectors = simd::kByteVectors;
  tiles.word_bytes = 4;
  tiles.transpose[0] = transpose_rows<4>;
  tiles.transpose[1] = transpose_rows<8>;
  tiles.transpose[2] = transpose_rows<16>;
  tiles.transpose_scales = transpose_rows<4>;
  return tiles;
}

constexpr KernelTable kernels_of_this_isa() {
  constexpr int kPlain = static_cast<int>(Store::kPlain), kStream = static_cast<int>(Store::kStreaming);
  KernelTable table{};
  table.isa = simd::kName;
#define FORMAT(name, id, fields) table.formats[k##name] = format_kernels<Block##name>();
#define REPACKED(name, id, fields, as) table.formats[k##name] = table.formats[k##as];
#include "dequant/formats.def"
#undef FORMAT
  table.to_float16[kPlain] = convert_numbers<Out::kFloat16, Store::kPlain>;
  table.to_float16[kStream] = convert_numbers<Out::kFloat16, kStreaming>;
  table.to_bfloat16[kPlain] = convert_numbers<Out::kBFloat16, Store::kPlain>;
  table.to_bfloat16[kStream] = convert_numbers<Out::kBFloat16, kStreaming>;
  table.store_fence = end_stores;
  table.tiles[0] = multiply_tile<1>;
  table.tiles[1] = multiply_tile<2>;
  table.tiles[2] = multiply_tile<3>;
  table.tiles[3] = multiply_tile<4>;
  table.tiles[4] = multiply_tile<5>;
  table.tiles[5] = multiply_tile<6>;
  table.lanes = simd::kLanes;
  table.measure = measure;
  table.all_finite = all_finite;
  table.measure_pair = measure_pair;
  table.find_slots = find_slots;
  table.find_slot_pairs = find_slot_pairs;
  table.round_runs = round_runs;
  table.level_tiles = level_tiles(std::make_integer_sequence<int, simd::kByteKinds>());
  return table;
}

constexpr KernelTable kThisIsa = kernels_of_this_isa();
#undef GGUF_THIS_ISA
#define GGUF_THIS_ISA &kThisIsa

}  // namespace
}  // namespace gguf
