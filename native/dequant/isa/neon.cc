// The kernels in NEON.
#include "dequant/isa/kernel_table.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "dequant/isa/kernels_for_this_isa.h"
// clang-format on
#endif

namespace gguf {
const KernelTable* const kNeonKernels = GGUF_THIS_ISA;
}  // namespace gguf
