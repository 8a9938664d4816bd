// The encoders for AVX2.
#include "quant/encoders.h"

#if defined(__x86_64__) || defined(_M_X64)
#include "dequant/simd/avx2.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
#include "quant/isa/encoders_for_this_isa.h"
GGUF_TARGET_END
#endif

namespace gguf {
const EncoderTable* const kAvx2Encoders = GGUF_THIS_ISA;
}  // namespace gguf
