// The encoders for NEON.
#include "quant/encoders.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon.h"
#include "quant/isa/encoders_for_this_isa.h"
// clang-format on

namespace gguf {
const EncoderTable* const kNeonEncoders = &kThisIsa;
}  // namespace gguf
#else
namespace gguf {
const EncoderTable* const kNeonEncoders = nullptr;
}  // namespace gguf
#endif
