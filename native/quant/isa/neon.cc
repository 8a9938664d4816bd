// The encoders for NEON.
#include "quant/encoders.h"

#if defined(__aarch64__) || defined(_M_ARM64)
// The primitives must be included first (not in alphabetical order).
// clang-format off
#include "dequant/simd/neon.h"
#include "quant/isa/encoders_for_this_isa.h"
// clang-format on
#endif

namespace gguf {
const EncoderTable* const kNeonEncoders = GGUF_THIS_ISA;
}  // namespace gguf
