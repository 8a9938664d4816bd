// The encoders for WebAssembly's SIMD.
#include "quant/encoders.h"

#if defined(__wasm_simd128__)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/wasm.h"
#include "quant/isa/encoders_for_this_isa.h"
// clang-format on
#endif

namespace gguf {
const EncoderTable* const kWasmEncoders = GGUF_THIS_ISA;
}  // namespace gguf
