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
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const kWasmKernels = nullptr;
}  // namespace gguf
#endif
