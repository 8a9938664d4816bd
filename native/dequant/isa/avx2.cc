// The kernels in AVX2.
#include "dequant/isa/kernel_table.h"

#if defined(__x86_64__) || defined(_M_X64)
#include "dequant/simd/avx2_bytes.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
#include "dequant/isa/kernels_for_this_isa.h"
GGUF_TARGET_END
#endif

namespace gguf {
const KernelTable* const kAvx2Kernels = GGUF_THIS_ISA;
}  // namespace gguf
