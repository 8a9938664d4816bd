// The kernels between products in plain C++, for every machine. The WebAssembly module does without.
#include "network/kernels.h"

#if !defined(__wasm_simd128__)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/scalar.h"
#include "network/isa/network_for_this_isa.h"
// clang-format on

namespace gguf {
const NetworkKernels* const kScalarNetwork = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const NetworkKernels* const kScalarNetwork = nullptr;
}  // namespace gguf
#endif
