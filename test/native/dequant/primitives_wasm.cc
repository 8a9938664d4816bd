// The primitives of wasm.h; see primitives.h.
#include "test/native/dequant/primitives.h"

#if defined(__wasm_simd128__)
// The set comes first, whatever the alphabet says.
// clang-format off
#include "dequant/simd/wasm_bytes.h"
#include "test/native/dequant/primitive_cases.h"
// clang-format on
#endif

namespace gguf::test {
const PrimitiveTable* const kWasmPrimitives = GGUF_THESE_PRIMITIVES;
}  // namespace gguf::test
