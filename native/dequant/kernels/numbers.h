// Formats whose blocks are single numbers.
#pragma once

#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

// F32     binary32: unchanged.
template <class Sink>
GGUF_INLINE void dequantize(const BlockF32* b, const Ahead<BlockF32>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockF32>; i += 32)
    y.put(i, simd::load_f32(b[i].value), simd::load_f32(b[i + 16].value));
}

// F16     binary16: converted, exactly.
template <class Sink>
GGUF_INLINE void dequantize(const BlockF16* b, const Ahead<BlockF16>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockF16>; i += 32)
    y.put(i, simd::load_f16(b[i].value), simd::load_f16(b[i + 16].value));
}

// BF16    bfloat16: the upper half of a binary32.
template <class Sink>
GGUF_INLINE void dequantize(const BlockBF16* b, const Ahead<BlockBF16>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockBF16>; i += 32) {
    y.put(i, simd::load_bf16(b[i].value), simd::load_bf16(b[i + 16].value));
  }
}

// I8, I16, I32, I64     signed integers: rounded to nearest even if binary32 cannot represent them.
template <class Sink>
GGUF_INLINE void dequantize(const BlockI8* b, const Ahead<BlockI8>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockI8>; i += 32)
    y.put(i, simd::load_int8(b[i].value), simd::load_int8(b[i + 16].value));
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockI16* b, const Ahead<BlockI16>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockI16>; i += 32) {
    y.put(i, simd::load_int16(b[i].value), simd::load_int16(b[i + 16].value));
  }
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockI32* b, const Ahead<BlockI32>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockI32>; i += 32) {
    y.put(i, simd::load_int32(b[i].value), simd::load_int32(b[i + 16].value));
  }
}

template <class Sink>
GGUF_INLINE void dequantize(const BlockI64* b, const Ahead<BlockI64>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockI64>; i += 32) {
    y.put(i, simd::load_int64(b[i].value), simd::load_int64(b[i + 16].value));
  }
}

// F64     binary64: rounded to nearest even.
template <class Sink>
GGUF_INLINE void dequantize(const BlockF64* b, const Ahead<BlockF64>&, Sink& y) {
  for (int i = 0; i < kGroup<BlockF64>; i += 32)
    y.put(i, simd::load_f64(b[i].value), simd::load_f64(b[i + 16].value));
}

}  // namespace
}  // namespace gguf
