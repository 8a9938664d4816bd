// The primitives of neon.h; see primitives.h.
#include "test/native/dequant/primitives.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The set comes first, whatever the alphabet says.
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "test/native/dequant/primitive_cases.h"
// clang-format on

namespace gguf::test {
const PrimitiveTable* const kNeonPrimitives = &cases::kPrimitives;
}  // namespace gguf::test
#else
namespace gguf::test {
const PrimitiveTable* const kNeonPrimitives = nullptr;
}  // namespace gguf::test
#endif
