// The primitives of neon.h; see primitives.h.
#include "test/native/dequant/primitives.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The set comes first, whatever the alphabet says.
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "test/native/dequant/primitive_cases.h"
// clang-format on
#endif

namespace gguf::test {
const PrimitiveTable* const kNeonPrimitives = GGUF_THESE_PRIMITIVES;
}  // namespace gguf::test
