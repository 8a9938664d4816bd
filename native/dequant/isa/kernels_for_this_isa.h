// The common part of all instruction sets. Each file of isa/ includes this once, inside its target region and
// after its header of simd/. It compiles every kernel for that set and defines their table, `kThisIsa`.
//
// Everything here, in kernels/ and in sinks/ is in an unnamed namespace. Otherwise the linker would merge
// functions with the same name, and one set would run the instructions of another.
#pragma once

#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/numbers.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"
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

constexpr KernelTable kThisIsa = {
    simd::kName,
    {
#define FORMAT(name, id, fields) \
  {store_blocks<Block##name, Store::kPlain>, store_blocks<Block##name, kStreaming>},
#include "dequant/formats.def"
#undef FORMAT
    },
    {convert_numbers<Out::kFloat16, Store::kPlain>, convert_numbers<Out::kFloat16, kStreaming>},
    {convert_numbers<Out::kBFloat16, Store::kPlain>, convert_numbers<Out::kBFloat16, kStreaming>},
    end_stores,
    {
#define FORMAT(name, id, fields) multiply_rows<Block##name>,
#include "dequant/formats.def"
#undef FORMAT
    },
    {multiply_tile<1, Rounding::kOnce>, multiply_tile<2, Rounding::kOnce>, multiply_tile<3, Rounding::kOnce>,
     multiply_tile<4, Rounding::kOnce>, multiply_tile<5, Rounding::kOnce>, multiply_tile<6, Rounding::kOnce>},
    {multiply_tile<1, kFastRounding>, multiply_tile<2, kFastRounding>, multiply_tile<3, kFastRounding>,
     multiply_tile<4, kFastRounding>, multiply_tile<5, kFastRounding>, multiply_tile<6, kFastRounding>},
    simd::kLanes,
    measure,
    {
#define FORMAT(name, id, fields) store_and_measure<Block##name>,
#include "dequant/formats.def"
#undef FORMAT
    },
    all_finite,
    measure_pair,
};

}  // namespace
}  // namespace gguf
