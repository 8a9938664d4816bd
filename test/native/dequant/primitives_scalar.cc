// The primitives of scalar.h; see primitives.h.
#include "test/native/dequant/primitives.h"

// The set comes first, whatever the alphabet says.
// clang-format off
#include "dequant/simd/scalar_bytes.h"
#include "test/native/dequant/primitive_cases.h"
// clang-format on

namespace gguf::test {
const PrimitiveTable* const kScalarPrimitives = &cases::kPrimitives;
}  // namespace gguf::test
