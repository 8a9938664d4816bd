// The common part of the x86-64 sets: words, and primitives with at most sixteen 16-bit lanes.
#pragma once

#include "dequant/simd/common.h"
#include "dequant/simd/target.h"
#include "dequant/simd/x86_intrinsics.h"

GGUF_TARGET_BEGIN("avx2,f16c")
namespace gguf {
namespace {
namespace simd {

GGUF_INLINE __m256i load256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
GGUF_INLINE __m128i load128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

GGUF_INLINE __m128i words128(uint64_t low, uint64_t high) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

GGUF_INLINE __m128i load_few(const uint8_t* p, int bytes) {
  if (bytes == 8) return _mm_loadu_si64(p);
  return _mm_cvtsi32_si128(static_cast<int>(bytes == 4 ? word32(p) : word16(p)));
}

template <int Bits, int Step, int PerWord>
GGUF_INLINE void join_rows(uint16_t* rows, const uint8_t* low, const uint8_t* high) {
  using R = RowFields<Bits, Step, PerWord>;
  const __m256i words = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_few(high, R::kBytes)),
                                            load256(kRowFields<R>.byte));
  // A multiplication moves the field of each lane to the top: there is no shift with a count per 16-bit lane.
  const __m256i at_top = _mm256_mullo_epi16(words, load256(kRowFields<R>.factor));
  const __m256i fields =
      _mm256_and_si256(_mm256_srli_epi16(at_top, 8 - Bits), _mm256_set1_epi16(((1 << Bits) - 1) << 8));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows),
                      _mm256_or_si256(_mm256_cvtepu8_epi16(load128(low)), fields));
}

GGUF_INLINE float half(const uint8_t* p) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(word16(p))));
}

/** Two halves: the second with its sign changed. */
GGUF_INLINE __m128 half_and_minus_half(const uint8_t* p) {
  const __m128 two = _mm_cvtph_ps(_mm_cvtsi32_si128(static_cast<int>(word32(p))));
  return _mm_xor_ps(two, _mm_setr_ps(0, -0.0f, 0, 0));
}

/** Eight numbers: the upper four added to the lower four, then two to two, then one to one. */
GGUF_INLINE float sum8(__m256 a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/**
 * Whether streaming stores may write a whole line: some processors lose up to a third of their speed when a
 * line arrives in parts. The answer is the same for all lines of an output, so this branch costs nothing.
 */
GGUF_INLINE bool is_line(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 64 == 0;
}

GGUF_INLINE void store_fence() {
  _mm_sfence();
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
