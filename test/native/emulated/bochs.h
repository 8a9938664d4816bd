// Included before everything else in what is to run under Bochs (see scripts/test/avx512.mjs).
#pragma once

#include <immintrin.h>

// Bochs before 2.8 rounds a float halfway between two halves away from zero, not to the even one. The
// differences are exact; where x is a half, both roundings are the same; and infinities and NaNs are not
// halfway.
template <int kRounding>
__attribute__((target("avx512f,avx512bw,avx512vl"), always_inline)) inline __m256i to_halves(__m512 x) {
  static_assert(kRounding == _MM_FROUND_TO_NEAREST_INT, "which is what is put right here");
  const __m256i nearest = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  const __m256i towards_zero = _mm512_cvtps_ph(x, _MM_FROUND_TO_ZERO);
  const __m512 to_nearest = _mm512_sub_ps(_mm512_cvtph_ps(nearest), x);
  const __m512 to_zero = _mm512_sub_ps(x, _mm512_cvtph_ps(towards_zero));
  const __mmask16 halfway = _mm512_cmp_ps_mask(to_nearest, to_zero, _CMP_EQ_OQ);
  const __mmask16 odd = _mm256_test_epi16_mask(nearest, _mm256_set1_epi16(1));
  return _mm256_mask_mov_epi16(nearest, halfway & odd, towards_zero);
}

#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph(x, rounding) to_halves<rounding>(x)
