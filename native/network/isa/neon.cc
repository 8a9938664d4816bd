// The kernels between products for NEON.
#include "network/kernels.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon.h"
#include "network/isa/network_for_this_isa.h"
// clang-format on

namespace gguf {
const NetworkKernels* const kNeonNetwork = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const NetworkKernels* const kNeonNetwork = nullptr;
}  // namespace gguf
#endif
