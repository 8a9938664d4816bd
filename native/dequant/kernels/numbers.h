// Formats whose blocks are single numbers.
#pragma once

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

// Sixteen numbers from `b` on:
//
// F32, F16, BF16        converted, exactly; bfloat16 is the upper half of a binary32
// I8, I16               converted, exactly
// I32, I64, F64         rounded to nearest even where binary32 cannot hold them
GGUF_INLINE simd::Floats16 sixteen(const BlockF32* b) {
  return simd::load_f32(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockF16* b) {
  return simd::load_f16(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockBF16* b) {
  return simd::load_bf16(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockI8* b) {
  return simd::load_int8(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockI16* b) {
  return simd::load_int16(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockI32* b) {
  return simd::load_int32(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockI64* b) {
  return simd::load_int64(b->value);
}
GGUF_INLINE simd::Floats16 sixteen(const BlockF64* b) {
  return simd::load_f64(b->value);
}

template <class Number, class Sink>
GGUF_INLINE std::enable_if_t<Number::kElements == 1> dequantize(const Number* b, const Ahead<Number>&,
                                                                Sink& y) {
  for (int i = 0; i < kGroup<Number>; i += 32) y.put(i, sixteen(b + i), sixteen(b + i + 16));
}

}  // namespace
}  // namespace gguf
