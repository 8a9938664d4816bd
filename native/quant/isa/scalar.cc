// The encoders in plain C++, for every machine. The WebAssembly module does without: all that run it have its
// SIMD, and it is downloaded. On x86-64, where hardly a processor needs them, their size counts more than
// their speed.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2")
#endif

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
