// The common part of x86-64 sets that is about products of levels: codes that become bytes, and eight runs at
// a time.
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

// ---- codes -----------------------------------------------------------------------------------------------

/** Nibbles stay in memory, in four runs of 16 bytes: low and high ones are made together. */
template <int Stride>
struct LowNibblesInOrder {
  const uint8_t* p;
};
template <int Stride>
struct HighNibblesInOrder {
  const uint8_t* p;
};

template <int N, int Stride>
GGUF_INLINE HighNibblesInOrder<Stride> shift(const LowNibblesInOrder<Stride>& c) {
  static_assert(N == 4, "nibbles are shifted by four bits");
  return {c.p};
}

template <class Levels, int Stride>
GGUF_INLINE LowNibblesInOrder<Stride> values(const LowNibblesInOrder<Stride>& c) {
  return c;
}
template <class Levels, int Stride>
GGUF_INLINE HighNibblesInOrder<Stride> values(const HighNibblesInOrder<Stride>& c) {
  return c;
}

/** The last 32 bytes of load_trits: every four of the last sixteen are three times those before. */
GGUF_INLINE __m256i last_trits(const uint8_t* p) {
  const __m128i one = _mm_set1_epi32(static_cast<int>(word32(p + 16)));
  const __m128i three = _mm_add_epi8(one, _mm_add_epi8(one, one));
  const __m128i nine = _mm_add_epi8(three, _mm_add_epi8(three, three));
  const __m128i last = _mm_unpacklo_epi64(
      _mm_unpacklo_epi32(one, three), _mm_unpacklo_epi32(nine, _mm_add_epi8(nine, _mm_add_epi8(nine, nine))));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(p)), last, 1);
}

// ---- rounding ---------------------------------------------------------------------------------------------

/** The bits of the largest magnitude of a run are the largest of the eight lanes. */
GGUF_INLINE __m256i largest_in_lanes(const float* run) {
  const auto magnitudes = [run](int i) GGUF_INLINE_LAMBDA {
    return _mm256_and_si256(load256(reinterpret_cast<const uint8_t*>(run + i)),
                            _mm256_set1_epi32(0x7fffffff));
  };
  return _mm256_max_epi32(_mm256_max_epi32(magnitudes(0), magnitudes(8)),
                          _mm256_max_epi32(magnitudes(16), magnitudes(24)));
}

/** Eight runs at a time; the last one stands for those that are missing. */
GGUF_INLINE void largest_of_runs(const float* x, int n, int32_t* most) {
  for (int first = 0; first < n; first += 8) {
    __m256i fours[2];  // of four runs: the largest of each half of the lanes
    GGUF_UNROLL
    for (int i = 0; i < 2; ++i) {
      const auto lanes = [&](int k) GGUF_INLINE_LAMBDA {
        const int run = first + 4 * i + k;
        return largest_in_lanes(x + 32 * (run < n ? run : n - 1));
      };
      const __m256i a = lanes(0), b = lanes(1), c = lanes(2), d = lanes(3);
      const __m256i ab = _mm256_max_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)),
                    cd = _mm256_max_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
      fours[i] = _mm256_max_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
    }
    store256(reinterpret_cast<uint8_t*>(most + first),
             _mm256_max_epi32(_mm256_permute2x128_si256(fours[0], fours[1], 0x20),
                              _mm256_permute2x128_si256(fours[0], fours[1], 0x31)));
  }
}

GGUF_INLINE void round_run(const float* x, float factor, int8_t* codes, int32_t (&sums)[2]) {
  const auto rounded = [=](int i) GGUF_INLINE_LAMBDA {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(factor)));
  };
  const __m256i in_lanes = _mm256_packs_epi16(_mm256_packs_epi32(rounded(0), rounded(8)),
                                              _mm256_packs_epi32(rounded(16), rounded(24)));
  const __m256i bytes = _mm256_permutevar8x32_epi32(in_lanes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  store256(reinterpret_cast<uint8_t*>(codes), bytes);
  // vpsadbw adds bytes without a sign: 128 is added to each.
  const __m256i eights =
      _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
  const __m256i halves = _mm256_add_epi32(eights, _mm256_unpackhi_epi64(eights, eights));
  sums[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(halves)) - 16 * 128;
  sums[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(halves, 1)) - 16 * 128;
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
