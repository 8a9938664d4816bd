// The kernels in NEON.
#include "dequant/isa/kernel_table.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "dequant/isa/kernels_for_this_isa.h"
// clang-format on

namespace gguf {
const KernelTable* const kNeonKernels = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const KernelTable* const kNeonKernels = nullptr;
}  // namespace gguf
#endif
