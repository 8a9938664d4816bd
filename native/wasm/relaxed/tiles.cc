// Tiles of levels of seven bits by relaxed SIMD, as a small module beside the other, with its memory: engines
// reject a module with instructions that they do not know. What relaxed_dot does is defined where its second
// operand has no top bit.
#include "dequant/simd/wasm_bytes.h"
#include "dequant/sinks/code_tile.h"
#include "wasm/module.h"

namespace gguf {
namespace {

template <int kRun>
void multiply(const CodeTile& tile) {
  switch (tile.n_vectors) {
    case 1:
      return multiply_code_tile<kRun, 1, 1>(tile);
    case 2:
      return multiply_code_tile<kRun, 1, 2>(tile);
    case 3:
      return multiply_code_tile<kRun, 1, 3>(tile);
    default:
      return multiply_code_tile<kRun, 1, 4>(tile);
  }
}

}  // namespace

GGUF_EXPORT("tile_of_16") void relaxed_tile_of_16(const CodeTile& tile) {
  multiply<16>(tile);
}
GGUF_EXPORT("tile_of_32") void relaxed_tile_of_32(const CodeTile& tile) {
  multiply<32>(tile);
}

}  // namespace gguf
