// The kernels in WebAssembly's SIMD.
#include "dequant/isa/kernel_table.h"

#if defined(__wasm_simd128__)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/wasm_bytes.h"
#include "dequant/isa/kernels_for_this_isa.h"
// clang-format on

namespace gguf {
const KernelTable* const kWasmKernels = &kThisIsa;

namespace {

/** Levels that fit in seven bits, as bytes, and transposed. */
template <int kRun, int kBias>
void narrow_rows(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  uint8_t bytes[kCodeRows][kRun];
  for (int r = 0; r < kCodeRows; ++r, rows += stride) {
    GGUF_UNROLL
    for (int i = 0; i < kRun; i += 16) {
      const v128_t narrow =
          wasm_i8x16_narrow_i16x8(wasm_v128_load(rows + 2 * i), wasm_v128_load(rows + 2 * i + 16));
      wasm_v128_store(bytes[r] + i, wasm_i8x16_add(narrow, wasm_i8x16_splat(kBias)));
    }
  }
  transpose_rows<kRun / 4>(bytes[0], kRun, to);
}

bool has_relaxed_tiles();

constexpr KernelTable relaxed_table() {
  KernelTable table = kThisIsa;
  table.isa = "wasm_relaxed";
  table.base = &kThisIsa;
  table.n_wanted = 3;
  table.is_ready = has_relaxed_tiles;
  LevelTiles& tiles = table.level_tiles;
  tiles.narrow_kind = 1;
  tiles.narrow[0][0] = narrow_rows<16, kNarrowBias>;
  tiles.narrow[0][1] = narrow_rows<32, kNarrowBias>;
  tiles.narrow[1][0] = narrow_rows<16, 0>;
  tiles.narrow[1][1] = narrow_rows<32, 0>;
  return table;
}

KernelTable relaxed = relaxed_table();
bool has_tiles = false;

bool has_relaxed_tiles() {
  return has_tiles;
}

}  // namespace

const KernelTable* const kWasmRelaxedKernels = &relaxed;

void use_relaxed_tiles(CodeTileMultiplier of_16, CodeTileMultiplier of_32) {
  has_tiles = of_16 != nullptr;
  for (int v = 0; v < simd::kByteVectors; ++v) {
    relaxed.level_tiles.of[0][1].of[v] = of_16;
    relaxed.level_tiles.of[1][1].of[v] = of_32;
  }
}
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const kWasmKernels = nullptr;
const KernelTable* const kWasmRelaxedKernels = nullptr;
}  // namespace gguf
#endif
