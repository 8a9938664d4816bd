// The products of levels in NEON with the instruction that adds four products. All else is that of NEON, and
// not compiled again.
#include "dequant/simd/neon_dotprod.h"

#include "dequant/isa/neon_dotprod.h"

#if defined(GGUF_NEON_DOTPROD)
GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"
#include "dequant/sinks/code_dot.h"
#include "dequant/sinks/code_tile.h"
// clang-format on

namespace gguf {
namespace {

/** nullptr where blocks are numbers. */
template <class Block>
constexpr CodeMultiplier code_multiplier() {
  if constexpr (Block::kElements > 1) {
    return multiply_codes<Block, 1>;
  } else {
    return nullptr;
  }
}

constexpr CodeMultiplier kCodeMultipliers[] = {
#define FORMAT(name, id, fields) code_multiplier<Block##name>(),
#define REPACKED(name, id, fields, as) code_multiplier<Block##as>(),
#include "dequant/formats.def"
#undef FORMAT
};
static_assert(simd::kByteKinds == 1, "one tile for runs of 16, and one for runs of 32");
constexpr CodeTileMultipliers kCodeTiles[2] = {code_tiles<16, 0>(), code_tiles<32, 0>()};

}  // namespace
}  // namespace gguf
GGUF_TARGET_END

namespace gguf {

// Called while the addon is loaded, on every machine: so it is outside of the target region.
KernelTable neon_dotprod_table() {
  KernelTable table = *kNeonKernels;
  table.isa = "neon_dotprod";
  table.base = kNeonKernels;
  for (int i = 0; i < kFormatCount; ++i) table.formats[i].multiply_codes = kCodeMultipliers[i];
  const LevelTiles& base = kNeonKernels->level_tiles;
  table.level_tiles = {{{kCodeTiles[0]}, {kCodeTiles[1]}},
                       base.rows,
                       simd::kByteVectors,
                       base.word_bytes,
                       {base.transpose[0], base.transpose[1], base.transpose[2]},
                       base.transpose_scales};
  static_assert(kCodeRows == 4, "as NEON has them, which transposes rows");
  return table;
}

namespace {
const KernelTable kThisIsa = neon_dotprod_table();
}  // namespace
const KernelTable* const kNeonDotprodKernels = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const kNeonDotprodKernels = nullptr;
}  // namespace gguf
#endif
