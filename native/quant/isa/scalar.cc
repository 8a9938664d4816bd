// The encoders in plain C++, for every machine. The WebAssembly module does without: all that run it have its
// SIMD, and it is downloaded.
#include "quant/encoders.h"

#if !defined(__wasm_simd128__)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/scalar.h"
#include "quant/isa/encoders_for_this_isa.h"
// clang-format on
#endif

namespace gguf {
const EncoderTable* const kScalarEncoders = GGUF_THIS_ISA;
}  // namespace gguf
