// The products of levels with several vectors by the instruction that multiplies small matrices. All else is
// that of NEON with the instruction for dot products, and not compiled again.
#include "dequant/simd/neon_i8mm.h"

#include "dequant/isa/neon_dotprod.h"

#if defined(GGUF_NEON_I8MM)
GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "dequant/sinks/code_tile.h"
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

// Called while the addon is loaded, on every machine: so it is outside of the target region.
KernelTable table_of_this_isa() {
  KernelTable table = neon_dotprod_table();
  table.isa = "neon_i8mm";
  const LevelTiles& base = kNeonKernels->level_tiles;
  table.level_tiles = {{{kCodeTiles[0]}, {kCodeTiles[1]}},
                       base.rows,
                       simd::kByteVectors,
                       8,
                       {transpose_rows<4>, transpose_rows<8>, nullptr},
                       base.transpose_scales};
  return table;
}

const KernelTable kThisIsa = table_of_this_isa();

}  // namespace
const KernelTable* const kNeonI8mmKernels = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const kNeonI8mmKernels = nullptr;
}  // namespace gguf
#endif
