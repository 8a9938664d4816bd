// The primitives of neon_bytes.h with the instruction for dot products, and those of neon.h once more; see
// primitives.h.
#include "dequant/simd/neon_dotprod.h"
#include "test/native/dequant/primitives.h"

#if defined(GGUF_NEON_DOTPROD)
GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
// The set comes first, whatever the alphabet says.
// clang-format off
#include "dequant/simd/neon_bytes.h"
#include "test/native/dequant/primitive_cases.h"
// clang-format on
GGUF_TARGET_END

namespace gguf::test {
namespace {
constexpr PrimitiveTable renamed(PrimitiveTable table) {
  table.isa = "neon_dotprod";
  return table;
}
constexpr PrimitiveTable kPrimitives = renamed(cases::kPrimitives);
}  // namespace
const PrimitiveTable* const kNeonDotprodPrimitives = &kPrimitives;
}  // namespace gguf::test
#else
namespace gguf::test {
const PrimitiveTable* const kNeonDotprodPrimitives = nullptr;
}  // namespace gguf::test
#endif
