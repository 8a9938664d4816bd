// The kernels between products for WebAssembly's SIMD.
#include "network/kernels.h"

#if defined(__wasm_simd128__)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/wasm.h"
#include "network/isa/network_for_this_isa.h"
// clang-format on

namespace gguf {
const NetworkKernels* const kWasmNetwork = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const NetworkKernels* const kWasmNetwork = nullptr;
}  // namespace gguf
#endif
