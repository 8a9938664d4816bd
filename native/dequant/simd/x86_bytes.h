// The common part of x86-64 sets that is about products of levels: eight runs at a time.
#pragma once

#include "dequant/simd/common.h"
#include "dequant/simd/target.h"
#include "dequant/simd/x86.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

GGUF_INLINE void store256(uint8_t* to, __m256i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}

GGUF_INLINE int32_t sum_of_16(const int8_t* p) {
  // vpsadbw adds bytes without a sign: 128 is added to each.
  const __m128i bytes = _mm_xor_si128(load128(p), _mm_set1_epi8(-128));
  const __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
  return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
}

// ---- one row and one vector ------------------------------------------------------------------------------

struct Ints8 {
  __m256i x;
};

GGUF_INLINE Ints8 add(const Ints8& a, const int32_t* p) {
  return {_mm256_add_epi32(a.x, load256(p))};
}

struct Floats8 {
  __m256 x;
};

GGUF_INLINE Floats8 load_8(const float* p) {
  return {_mm256_loadu_ps(p)};
}

GGUF_INLINE void store_8(float* p, const Floats8& a) {
  _mm256_storeu_ps(p, a.x);
}

GGUF_INLINE Floats8 floats_8(float a, float b, float c, float d, float e, float f, float g, float h) {
  return {_mm256_setr_ps(a, b, c, d, e, f, g, h)};
}

GGUF_INLINE Floats8 to_floats(const Ints8& a) {
  return {_mm256_cvtepi32_ps(a.x)};
}

GGUF_INLINE Floats8 mul(const Floats8& a, const Floats8& b) {
  return {_mm256_mul_ps(a.x, b.x)};
}

GGUF_INLINE Floats8 add(const Floats8& a, const Floats8& b) {
  return {_mm256_add_ps(a.x, b.x)};
}

GGUF_INLINE float sum(const Floats8& a) {
  return sum8(a.x);
}

GGUF_INLINE Floats8 keep(const Floats8& a, int first, int end) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i is_before = _mm256_cmpgt_epi32(_mm256_set1_epi32(first), lane);
  const __m256i is_within = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane);
  return {_mm256_and_ps(a.x, _mm256_castsi256_ps(_mm256_andnot_si256(is_before, is_within)))};
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
