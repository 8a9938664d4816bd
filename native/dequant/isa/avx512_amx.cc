// The products of levels with 16 vectors and more by AMX; all else is that of AVX-512, and not compiled
// again.
//
// No product is made by AMX before Linux allows it to the process, and before some have been what they should
// be.
#include "dequant/isa/amx_table.h"

// Where the compiler knows AMX, and on the system that allows it to processes.
#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#include "dequant/cpu.h"
#include "dequant/simd/avx512_bytes.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES ",amx-tile,amx-int8")
#include "dequant/isa/amx_tile.h"
GGUF_TARGET_END

namespace gguf {
namespace {

/** Asked by the first product with enough vectors. */
bool is_ready() {
  static const bool ready = allow_amx() && amx_tiles_are_right(kAmxTiles);
  return ready;
}

const KernelTable kThisIsa = amx_table(kAmxTiles, is_ready);

}  // namespace
const KernelTable* const kAvx512AmxKernels = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const kAvx512AmxKernels = nullptr;
}  // namespace gguf
#endif
