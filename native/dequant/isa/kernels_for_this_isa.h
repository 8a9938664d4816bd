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
  FormatKernels kernels{{store_blocks<Block, Store::kPlain>, store_blocks<Block, kStreaming>},
                        multiply_rows<Block>,
                        store_and_measure<Block>,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};
  if constexpr (Block::kElements == 1) {
    kernels.multiply_pair = pair_multiplier<Block>();
  } else {
    kernels.multiply_codes = multiply_codes<Block>;
    kernels.unpack = unpack_blocks<Block>;
    kernels.code_facts = find_code_facts<Block>;
  }
  return kernels;
}

constexpr KernelTable kThisIsa = {
    simd::kName,
    {
#define FORMAT(name, id, fields) format_kernels<Block##name>(),
#include "dequant/formats.def"
#undef FORMAT
    },
    {convert_numbers<Out::kFloat16, Store::kPlain>, convert_numbers<Out::kFloat16, kStreaming>},
    {convert_numbers<Out::kBFloat16, Store::kPlain>, convert_numbers<Out::kBFloat16, kStreaming>},
    end_stores,
    {multiply_tile<1>, multiply_tile<2>, multiply_tile<3>, multiply_tile<4>, multiply_tile<5>,
     multiply_tile<6>},
    simd::kLanes,
    measure,
    all_finite,
    measure_pair,
    find_slots,
    find_slot_pairs,
    round_runs,
    {{code_tiles<16, 0>(), code_tiles<16, 1>(), code_tiles<16, 2>(), code_tiles<16, 3>(),
      code_tiles<16, 4>()},
     {code_tiles<32, 0>(), code_tiles<32, 1>(), code_tiles<32, 2>(), code_tiles<32, 3>(),
      code_tiles<32, 4>()}},
    kCodeRows,
    simd::kByteVectors,
    4,
    {transpose_rows<4>, transpose_rows<8>, transpose_rows<16>},
    transpose_rows<4>,
    nullptr,
    0,
    nullptr,
};

}  // namespace
}  // namespace gguf
