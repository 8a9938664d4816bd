// The common part of x86-64 sets that is about levels as bytes. Codes that become bytes stay in the order of
// the row, in two registers of 256 bits.
//
// Included by a set after it has defined kByteBias and spread_32.
#pragma once

#include "dequant/simd/common.h"
#include "dequant/simd/target.h"
#include "dequant/simd/x86.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

// ---- loading codes ---------------------------------------------------------------------------------------

/** Units 0 and 1 in low, 2 and 3 in high. */
template <int Bits>
struct CodesInOrder {
  __m256i low, high;
};

/** Nibbles stay in memory, in four runs of 16 bytes: low and high ones of a run are made by one shift. */
template <int Stride>
struct LowNibblesInOrder {
  const uint8_t* p;
};
template <int Stride>
struct HighNibblesInOrder {
  const uint8_t* p;
};

template <int Stride>
GGUF_INLINE __m256i load_two(const uint8_t* p) {
  if constexpr (Stride == 16) return load256(p);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(p)), load128(p + Stride), 1);
}

template <int Bits, int Stride>
GGUF_INLINE auto load_runs(const uint8_t* p, ToBytes) {
  if constexpr (Bits == 4) {
    return LowNibblesInOrder<Stride>{p};
  } else {
    return CodesInOrder<Bits>{load_two<Stride>(p), load_two<Stride>(p + 2 * Stride)};
  }
}

template <int Bits>
GGUF_INLINE auto load(const uint8_t* p, ToBytes to) {
  return load_runs<Bits, 16>(p, to);
}

template <int Bits>
GGUF_INLINE CodesInOrder<Bits> load_twice(const uint8_t* p, ToBytes) {
  const __m256i codes = load256(p);
  return {codes, codes};
}

template <int Bits>
GGUF_INLINE CodesInOrder<Bits> spread_bits(uint64_t bits, ToBytes) {
  return {spread_32(static_cast<uint32_t>(bits)), spread_32(static_cast<uint32_t>(bits >> 32))};
}

/** 32 codes from eight bytes: byte i four times, shifted by 0, 2, 4 and 6. */
GGUF_INLINE __m256i unpack_pairs(const uint8_t* p) {
  const __m256i from = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,  //
                                        4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi64x(static_cast<int64_t>(word64(p))), from);
  const __m256i odd = _mm256_set1_epi16(static_cast<short>(0xff00));
  const __m256i pairs = _mm256_blendv_epi8(bytes, _mm256_srli_epi16(bytes, 2), odd);
  return _mm256_blend_epi16(pairs, _mm256_srli_epi32(pairs, 4), 0xaa);
}

template <int Bits>
GGUF_INLINE CodesInOrder<Bits> load_packed(const uint8_t* p, ToBytes) {
  return {unpack_pairs(p), unpack_pairs(p + 8)};
}

/** Every eight bytes twice, and the second time their high nibbles. */
GGUF_INLINE __m256i two_nibble_runs(const uint8_t* p) {
  const __m256i twice = _mm256_permute4x64_epi64(_mm256_castsi128_si256(load128(p)), _MM_SHUFFLE(1, 1, 0, 0));
  return _mm256_srlv_epi64(twice, _mm256_setr_epi64x(0, 4, 0, 4));
}

template <int Bits>
GGUF_INLINE CodesInOrder<Bits> load_nibble_runs(const uint8_t* p, ToBytes) {
  return {two_nibble_runs(p), two_nibble_runs(p + 16)};
}

// ---- codes -----------------------------------------------------------------------------------------------

template <int N>
GGUF_INLINE __m256i shift_words(__m256i x) {
  if constexpr (N > 0) return _mm256_srli_epi16(x, N);
  if constexpr (N < 0) return _mm256_slli_epi16(x, -N);
  return x;
}

template <int A, int B, int Bits>
GGUF_INLINE CodesInOrder<Bits> shift_halves(const CodesInOrder<Bits>& c) {
  return {shift_words<A>(c.low), shift_words<B>(c.high)};
}

template <int N, int Bits>
GGUF_INLINE CodesInOrder<Bits> shift(const CodesInOrder<Bits>& c) {
  return shift_halves<N, N>(c);
}

template <int N, int Stride>
GGUF_INLINE HighNibblesInOrder<Stride> shift(const LowNibblesInOrder<Stride>& c) {
  static_assert(N == 4, "nibbles are shifted by four bits");
  return {c.p};
}

template <int Mask>
GGUF_INLINE __m256i select_bytes(__m256i a, __m256i b) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(Mask));
  return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

template <int Mask, int Bits>
GGUF_INLINE CodesInOrder<Bits> select(const CodesInOrder<Bits>& a, const CodesInOrder<Bits>& b) {
  return {select_bytes<Mask>(a.low, b.low), select_bytes<Mask>(a.high, b.high)};
}

struct TritsInOrder {
  __m256i low, high;
};

GGUF_INLINE __m256i times3(__m256i x) {
  return _mm256_add_epi8(x, _mm256_add_epi8(x, x));
}

/** Every four of the last sixteen bytes are three times those before. */
GGUF_INLINE TritsInOrder load_trits(const uint8_t* p, ToBytes) {
  const __m128i one = _mm_set1_epi32(static_cast<int>(word32(p + 48)));
  const __m128i three = _mm_add_epi8(one, _mm_add_epi8(one, one));
  const __m128i nine = _mm_add_epi8(three, _mm_add_epi8(three, three));
  const __m128i last = _mm_unpacklo_epi64(
      _mm_unpacklo_epi32(one, three), _mm_unpacklo_epi32(nine, _mm_add_epi8(nine, _mm_add_epi8(nine, nine))));
  return {load256(p), _mm256_inserti128_si256(_mm256_castsi128_si256(load128(p + 32)), last, 1)};
}

GGUF_INLINE TritsInOrder times3(const TritsInOrder& t) {
  return {times3(t.low), times3(t.high)};
}

/** 3x >> 8 is 0 below 86, 1 below 171, otherwise 2: each comparison that holds is -1. */
GGUF_INLINE __m256i top_trits_of_half(__m256i x) {
  const __m256i one = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8(86)), x);
  const __m256i two = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8(static_cast<char>(171))), x);
  return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(one, two));
}

GGUF_INLINE CodesInOrder<2> top_trits(const TritsInOrder& t) {
  return {top_trits_of_half(t.low), top_trits_of_half(t.high)};
}

template <class Levels>
GGUF_INLINE CodesInOrder<Levels::kBits> values(const CodesInOrder<Levels::kBits>& c) {
  return c;
}
template <class Levels, int Stride>
GGUF_INLINE LowNibblesInOrder<Stride> values(const LowNibblesInOrder<Stride>& c) {
  return c;
}
template <class Levels, int Stride>
GGUF_INLINE HighNibblesInOrder<Stride> values(const HighNibblesInOrder<Stride>& c) {
  return c;
}

// ---- bytes ---------------------------------------------------------------------------------------

struct Bytes32 {
  __m256i x;
};

/** The levels of 32 codes, with kByteBias added. */
template <class Levels>
GGUF_INLINE Bytes32 levels_of_codes(__m256i codes) {
  constexpr int kBias = kByteBias<Levels>;
  if constexpr (std::is_same_v<Levels, Signed8>) {
    static_assert(kBias == 0 || kBias == 128, "the top bit");
    return {kBias == 0 ? codes : _mm256_xor_si256(codes, _mm256_set1_epi8(-128))};
  } else {
    const __m256i code = _mm256_and_si256(codes, _mm256_set1_epi8((1 << Levels::kBits) - 1));
    if constexpr (Levels::kLinear) {
      static_assert(kBias == -Levels::value(0), "bytes are codes");
      return {code};
    } else {
      return {
          _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(kByteLevels<Levels, kBias>.byte)), code)};
    }
  }
}

GGUF_INLINE void store256(uint8_t* to, __m256i x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}

template <class Levels, int Bits>
GGUF_INLINE Bytes32 level_bytes(const CodesInOrder<Bits>& v, int unit) {
  return levels_of_codes<Levels>(unit == 0 ? v.low : v.high);
}

template <class Levels, int Bits>
GGUF_INLINE Bytes32 level_bytes(const CodesInOrder<Bits>& a, int i, const CodesInOrder<Bits>& b, int k) {
  const __m256i first = i < 2 ? a.low : a.high, second = k < 2 ? b.low : b.high;
  __m256i both;
  if (i % 2 == 0) {
    both =
        k % 2 == 0 ? _mm256_permute2x128_si256(first, second, 0x20) : _mm256_blend_epi32(first, second, 0xf0);
  } else {
    both = k % 2 == 0 ? _mm256_permute2x128_si256(first, second, 0x21)
                      : _mm256_permute2x128_si256(first, second, 0x31);
  }
  return levels_of_codes<Levels>(both);
}

template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const LowNibblesInOrder<Stride>& v, int unit) {
  return levels_of_codes<Levels>(load_two<Stride>(v.p + Stride * unit));
}
template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const HighNibblesInOrder<Stride>& v, int unit) {
  return levels_of_codes<Levels>(_mm256_srli_epi16(load_two<Stride>(v.p + Stride * unit), 4));
}
template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const LowNibblesInOrder<Stride>& v, int unit,
                                const HighNibblesInOrder<Stride>&, int) {
  const __m256i twice = _mm256_broadcastsi128_si256(load128(v.p + Stride * unit));
  return levels_of_codes<Levels>(_mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)));
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const SignedBytes& v, int unit) {
  return levels_of_codes<Levels>(load256(v.p + 16 * unit));
}

GGUF_INLINE void store_bytes(uint8_t* to, const Bytes32& a) {
  store256(to, a.x);
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
