// The kernels between products for AVX-512.
#include "network/kernels.h"

#if defined(__x86_64__) || defined(_M_X64)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/avx512.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
#include "network/isa/network_for_this_isa.h"
GGUF_TARGET_END
// clang-format on

namespace gguf {
const NetworkKernels* const kAvx512Network = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const NetworkKernels* const kAvx512Network = nullptr;
}  // namespace gguf
#endif
