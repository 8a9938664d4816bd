// The products of levels in AVX2 with the instruction that adds four products. All else is that of AVX2, and
// not compiled again: levels that have no sign there are the same bytes here.
#include "dequant/simd/avx2_vnni.h"

#include "dequant/isa/kernel_table.h"

#if defined(GGUF_EVEX_VNNI)
#define GGUF_THIS_SET kAvx2EvexVnniKernels
#else
#define GGUF_THIS_SET kAvx2VnniKernels
#endif

#if defined(GGUF_VNNI)
GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/avx2_bytes.h"
#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"
#include "dequant/sinks/code_dot.h"
#include "dequant/sinks/code_tile.h"
#include "dequant/sinks/code_transpose.h"
// clang-format on

namespace gguf {
namespace {

static_assert(simd::kByteKinds == 1, "one tile for runs of 16, and one for runs of 32");
constexpr CodeTileMultipliers kCodeTiles[2] = {code_tiles<16, 0>(), code_tiles<32, 0>()};

}  // namespace
}  // namespace gguf
GGUF_TARGET_END

namespace gguf {
namespace {

template <class Block>
void take_code_kernels(FormatKernels& kernels) {
  if constexpr (Block::kElements > 1) {
    kernels.code_facts = find_code_facts<Block>;
    kernels.most_dots = most_dots<Block>();
  }
}

/** With levels that AVX2 keeps signed, for they are too large for its products. */
template <class Block>
void take_unsigned(FormatKernels& kernels) {
  take_unpackers<Block>(kernels);
  take_multipliers<Block>(kernels);
}

// Called while the addon is loaded, on every machine: so it is outside of the target region.
KernelTable table_of_this_isa() {
  KernelTable table = *kAvx2Kernels;
  table.isa = "avx2_vnni";
  table.base = kAvx2Kernels;
  take_unsigned<BlockQ8_0>(table.formats[kQ8_0]);
  take_unsigned<BlockQ8_1>(table.formats[kQ8_1]);
  take_unsigned<BlockQ8_K>(table.formats[kQ8_K]);
  take_unsigned<BlockIQ4_NL>(table.formats[kIQ4_NL]);
  take_unsigned<BlockIQ4_XS>(table.formats[kIQ4_XS]);
#define FORMAT(name, id, fields) take_code_kernels<Block##name>(table.formats[k##name]);
#define REPACKED(name, id, fields, as) table.formats[k##name] = table.formats[k##as];
#include "dequant/formats.def"
#undef FORMAT
  const LevelTiles& base = kAvx2Kernels->level_tiles;
  table.level_tiles = {{{kCodeTiles[0]}, {kCodeTiles[1]}},
                       base.rows,
                       simd::kByteVectors,
                       base.word_bytes,
                       {base.transpose[0], base.transpose[1], base.transpose[2]},
                       base.transpose_scales};
  return table;
}

const KernelTable kThisIsa = table_of_this_isa();

}  // namespace
const KernelTable* const GGUF_THIS_SET = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const GGUF_THIS_SET = nullptr;
}  // namespace gguf
#endif
