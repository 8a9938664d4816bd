// The kernels in plain C++, for every machine.
#include "dequant/isa/kernel_table.h"

// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/scalar_bytes.h"
#include "dequant/isa/kernels_for_this_isa.h"
// clang-format on

namespace gguf {
const KernelTable* const kScalarKernels = &kThisIsa;
}  // namespace gguf
