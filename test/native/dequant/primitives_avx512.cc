// The primitives of avx512.h; see primitives.h.
#include "test/native/dequant/primitives.h"

#if defined(__x86_64__) || defined(_M_X64)
#include "dequant/simd/avx512_bytes.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
#include "test/native/dequant/primitive_cases.h"
GGUF_TARGET_END
#endif

namespace gguf::test {
const PrimitiveTable* const kAvx512Primitives = GGUF_THESE_PRIMITIVES;
}  // namespace gguf::test
