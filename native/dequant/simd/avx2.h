// AVX2 with F16C and FMA: x86-64 since 2013.
#pragma once

#include "dequant/simd/common.h"
#include "dequant/simd/target.h"
#include "dequant/simd/x86.h"

#define GGUF_SIMD_SET

#define GGUF_ISA_FEATURES "avx2,f16c,fma"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

constexpr const char* kName = "avx2";
constexpr bool kStreams = true;
constexpr bool kMultipliesInKernels = true;
constexpr int kPairRegisters = 1;

struct Floats16 {
  __m256 low, high;
};

constexpr int kLanes = 8;
constexpr int kTileSums = 12;  // of 16 registers
struct Lanes {
  __m256 x;
};

/**
 * Units 0 and 1 in low, units 2 and 3 in high, interleaved: byte v of 32-bit lane i is code 8v + i of the
 * half. So one instruction puts eight consecutive codes into separate lanes, and codes of up to three bits
 * are looked up by vpermps or vpermilps, which take an index from the low bits of each lane.
 *
 * Codes of four bits, whose levels are not linear, first become 16-bit numbers by byte look-ups. The result
 * is interleaved in this way if bytes 2i and 2i + 1 of the lower half of a 128-bit lane belong to the same
 * number lane, and those of the upper half, too (kPaired).
 */
template <int Bits>
struct Codes {
  static constexpr bool kLookedUp = Bits <= 3, kPaired = Bits == 4;
  __m256i low, high;
};

// ---- loading codes ---------------------------------------------------------------------------------------

/** From file order to interleaved or paired order. */
template <int Bits>
GGUF_INLINE __m256i interleave(__m256i codes) {
  const __m256i fours = _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  const __m128i transposed = Codes<Bits>::kPaired
                                 ? _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15)
                                 : _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm256_shuffle_epi8(fours, _mm256_broadcastsi128_si256(transposed));
}

/**
 * Nibbles stay in memory, in four runs of 16 bytes: if their levels are linear, loads widen them, which takes
 * fewer instructions than loading them into registers first.
 */
template <int Stride>
struct LowNibbles {
  const uint8_t* p;
};
template <int Stride>
struct HighNibbles {
  const uint8_t* p;
};

template <int Bits>
GGUF_INLINE auto load(const uint8_t* p, ToNumbers = {}) {
  if constexpr (Bits == 4) {
    return LowNibbles<16>{p};
  } else {
    return Codes<Bits>{interleave<Bits>(load256(p)), interleave<Bits>(load256(p + 32))};
  }
}

template <int Bits>
GGUF_INLINE Codes<Bits> load_twice(const uint8_t* p, ToNumbers = {}) {
  const __m256i codes = interleave<Bits>(load256(p));
  return {codes, codes};
}

template <int Bits, int Stride>
GGUF_INLINE __m256i load_two_runs(const uint8_t* p) {
  if constexpr (Stride == 16) return interleave<Bits>(load256(p));
  return interleave<Bits>(
      _mm256_inserti128_si256(_mm256_castsi128_si256(load128(p)), load128(p + Stride), 1));
}

template <int Bits, int Stride>
GGUF_INLINE Codes<Bits> load_runs_of_bytes(const uint8_t* p) {
  return {load_two_runs<Bits, Stride>(p), load_two_runs<Bits, Stride>(p + 2 * Stride)};
}

template <int Bits, int Stride>
GGUF_INLINE auto load_runs(const uint8_t* p, ToNumbers = {}) {
  if constexpr (Bits == 4) {
    return LowNibbles<Stride>{p};
  } else {
    return load_runs_of_bytes<Bits, Stride>(p);
  }
}

/** Bit 8v + i is bit i of byte v: the same bit in all bytes of a lane. */
GGUF_INLINE __m256i spread_bits_of_half(uint32_t bits) {
  const __m256i bit = _mm256_setr_epi32(0x01010101, 0x02020202, 0x04040404, 0x08080808, 0x10101010,
                                        0x20202020, 0x40404040, static_cast<int>(0x80808080));
  return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), bit), bit);
}

template <int Bits>
GGUF_INLINE Codes<Bits> spread_bits(uint64_t bits, ToNumbers = {}) {
  return {spread_bits_of_half(static_cast<uint32_t>(bits)),
          spread_bits_of_half(static_cast<uint32_t>(bits >> 32))};
}

template <int Bits>
GGUF_INLINE __m256i load_packed_half(const uint8_t* p) {
  static_assert(Codes<Bits>::kLookedUp, "packed codes are narrow");
  // Code 8v + i comes from byte 2v + i/4, bits 2*(i%4) and up: gather the bytes, then shift each lane.
  const __m256i bytes = _mm256_setr_epi32(0x06040200, 0x06040200, 0x06040200, 0x06040200, 0x07050301,
                                          0x07050301, 0x07050301, 0x07050301);
  const __m256i codes = _mm256_shuffle_epi8(_mm256_set1_epi64x(static_cast<int64_t>(word64(p))), bytes);
  return _mm256_srlv_epi32(codes, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
}

template <int Bits>
GGUF_INLINE Codes<Bits> load_packed(const uint8_t* p, ToNumbers = {}) {
  return {load_packed_half<Bits>(p), load_packed_half<Bits>(p + 8)};
}

GGUF_INLINE __m256i load_nibble_runs_half(const uint8_t* p) {
  // Every byte twice, and the second time its high nibble.
  const __m256i from = _mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 8, 8, 9, 9, 10, 10, 11, 11,  //
                                        4, 4, 5, 5, 6, 6, 7, 7, 12, 12, 13, 13, 14, 14, 15, 15);
  const __m256i twice = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(p)), from);
  const __m256i odd = _mm256_set1_epi16(static_cast<short>(0xff00));
  return _mm256_blendv_epi8(twice, _mm256_srli_epi16(twice, 4), odd);
}

template <int Bits>
GGUF_INLINE Codes<Bits> load_nibble_runs(const uint8_t* p, ToNumbers = {}) {
  return {load_nibble_runs_half(p), load_nibble_runs_half(p + 16)};
}

/**
 * Codebook rows are not combined in a register: a load turns a row of eight into eight numbers, and two rows
 * of four need a few instructions after their loads. The signs are applied to these numbers.
 */
template <class Row>
struct Rows {
  const Row* book;
  const uint16_t* rows;
  const uint8_t* signs;
};
/** Packed rows, whose two bits are looked up, if the top bit is not a sign. A row has all top bits or none.
 */
struct PackedRows {
  const uint16_t* book;
  const uint16_t* rows;
  const uint8_t* tops;
};

template <class Levels>
constexpr bool kTopIsSign = Levels::value(1 << (Levels::kBits - 1)) == -Levels::value(0);

template <const auto& kBook, int kCount>
using BookRows = NumberedRows<kBook, kCount>;

template <class Levels, const auto& kBook, int kCount>
GGUF_INLINE auto gather8(const BookRows<kBook, kCount>& rows, int first, const uint8_t* signs,
                         ToNumbers = {}) {
  if constexpr (kTopIsSign<Levels>) {
    return Rows<uint16_t>{kBook.halves, rows.number + first, signs};
  } else {
    return PackedRows{kBook.packed, rows.number + first, signs};
  }
}

template <class Levels, const auto& kBook, int kCount>
GGUF_INLINE Rows<uint32_t> gather16(const BookRows<kBook, kCount>& rows, int first, const uint8_t* signs,
                                    ToNumbers = {}) {
  return {kBook.levels, rows.number + first, signs};
}

/** Eight levels as numbers, from index 8i on. */
GGUF_INLINE __m256 levels_of_rows(const Rows<uint16_t>& v, int i) {
  return _mm256_cvtph_ps(load128(v.book + 8 * v.rows[i]));
}
GGUF_INLINE __m256 levels_of_rows(const Rows<uint32_t>& v, int i) {
  const __m128i first = _mm_cvtsi32_si128(static_cast<int>(v.book[v.rows[2 * i]]));
  const __m128i both = _mm_insert_epi32(first, static_cast<int>(v.book[v.rows[2 * i + 1]]), 1);
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(both));
}

// ---- codes -----------------------------------------------------------------------------------------------

template <int N>
GGUF_INLINE __m256i shift_half(__m256i x) {
  if constexpr (N > 0) return _mm256_srli_epi32(x, N);
  if constexpr (N < 0) return _mm256_slli_epi32(x, -N);
  return x;
}

template <int A, int B, int Bits>
GGUF_INLINE Codes<Bits> shift_halves(const Codes<Bits>& c) {
  return {shift_half<A>(c.low), shift_half<B>(c.high)};
}

template <int N, int Bits>
GGUF_INLINE Codes<Bits> shift(const Codes<Bits>& c) {
  return shift_halves<N, N>(c);
}

template <int N, int Stride>
GGUF_INLINE HighNibbles<Stride> shift(const LowNibbles<Stride>& c) {
  static_assert(N == 4, "nibbles are shifted by four bits");
  return {c.p};
}

template <int Mask>
GGUF_INLINE __m256i select_half(__m256i a, __m256i b) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(Mask));
  return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

template <int Mask, int Bits>
GGUF_INLINE Codes<Bits> select(const Codes<Bits>& a, const Codes<Bits>& b) {
  return {select_half<Mask>(a.low, b.low), select_half<Mask>(a.high, b.high)};
}

/** 32 bytes, each on top of a word: bytes 0 and 2 of each lane of interleaved codes, and bytes 1 and 3. */
struct TritsOfHalf {
  __m256i even, odd;
};
struct Trits {
  TritsOfHalf low, high;
};
/** The first digits, each at the bottom of its word. */
struct TopTrits {
  TritsOfHalf low, high;
};

GGUF_INLINE TritsOfHalf trits_of_half(__m256i codes) {
  const __m256i bytes = interleave<8>(codes);
  return {_mm256_slli_epi16(bytes, 8),
          _mm256_and_si256(bytes, _mm256_set1_epi16(static_cast<short>(0xff00)))};
}

GGUF_INLINE Trits load_trits(const uint8_t* p, ToNumbers = {}) {
  const __m128i few = _mm_set1_epi32(static_cast<int>(word32(p + 48)));
  const auto low = trits_of_half(load256(p));
  const auto high = trits_of_half(_mm256_inserti128_si256(_mm256_castsi128_si256(load128(p + 32)), few, 1));
  // The upper words are unit 3: first the bytes times 1 and 3, then those times 9 and 27.
  const __m256i by_1_3 = _mm256_setr_epi16(1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 3, 1, 3, 1, 3);
  const __m256i by_9_27 = _mm256_setr_epi16(1, 9, 1, 9, 1, 9, 1, 9, 1, 27, 1, 27, 1, 27, 1, 27);
  return {low, {_mm256_mullo_epi16(high.even, by_1_3), _mm256_mullo_epi16(high.odd, by_9_27)}};
}

GGUF_INLINE Trits times3(const Trits& t) {
  __m256i three = _mm256_set1_epi16(3);
  GGUF_KEEP_IN_REGISTER("x", three);  // rather than to shift and add
  return {{_mm256_mullo_epi16(t.low.even, three), _mm256_mullo_epi16(t.low.odd, three)},
          {_mm256_mullo_epi16(t.high.even, three), _mm256_mullo_epi16(t.high.odd, three)}};
}

GGUF_INLINE TopTrits top_trits(const Trits& t) {
  const __m256i three = _mm256_set1_epi16(3);
  return {{_mm256_mulhi_epu16(t.low.even, three), _mm256_mulhi_epu16(t.low.odd, three)},
          {_mm256_mulhi_epu16(t.high.even, three), _mm256_mulhi_epu16(t.high.odd, three)}};
}

// ---- floats ----------------------------------------------------------------------------------------------

GGUF_INLINE Floats16 load_f32(const void* p) {
  const float* x = static_cast<const float*>(p);
  return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
}

GGUF_INLINE Floats16 load_f16(const uint8_t* p) {
  return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 16))};
}

GGUF_INLINE __m256 bf16_to_float(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

GGUF_INLINE Floats16 load_bf16(const uint8_t* p) {
  return {bf16_to_float(load128(p)), bf16_to_float(load128(p + 16))};
}

GGUF_INLINE __m256 int8_to_float(__m128i x) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x));
}

GGUF_INLINE Floats16 load_int8(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  return {int8_to_float(_mm_loadu_si64(bytes)), int8_to_float(_mm_loadu_si64(bytes + 8))};
}

GGUF_INLINE Floats16 load_int16(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(load128(bytes))),
          _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(load128(bytes + 16)))};
}

GGUF_INLINE Floats16 load_int32(const void* p) {
  const uint8_t* bytes = static_cast<const uint8_t*>(p);
  return {_mm256_cvtepi32_ps(load256(bytes)), _mm256_cvtepi32_ps(load256(bytes + 32))};
}

/** There is no vector instruction for this: numbers are converted one by one, each rounded once. */
GGUF_INLINE Floats16 load_int64(const uint8_t* p) {
  alignas(32) float x[16];
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(static_cast<int64_t>(word64(p + 8 * i)));
  return load_f32(x);
}

GGUF_INLINE __m256 eight_doubles(const uint8_t* p) {
  const double* x = reinterpret_cast<const double*>(p);
  return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(x + 4)), _mm256_cvtpd_ps(_mm256_loadu_pd(x)));
}

GGUF_INLINE Floats16 load_f64(const uint8_t* p) {
  return {eight_doubles(p), eight_doubles(p + 64)};
}

GGUF_INLINE Floats16 int8x16(uint64_t low, uint64_t high) {
  return {int8_to_float(_mm_cvtsi64_si128(static_cast<int64_t>(low))),
          int8_to_float(_mm_cvtsi64_si128(static_cast<int64_t>(high)))};
}

GGUF_INLINE Floats16 load_sixes(const uint8_t* p) {
  const Bytes16 bytes = split_sixes(p);
  return int8x16(bytes.low, bytes.high);
}

GGUF_INLINE Floats16 join_sixes(const uint8_t* nibbles, const uint8_t* pairs) {
  return int8x16(joined_sixes(nibbles, pairs), 0);
}

template <int Stride>
GGUF_INLINE __m256 eight_halves(const uint8_t* p) {
  __m128i x = _mm_cvtsi32_si128(word16(p));
  x = _mm_insert_epi16(x, word16(p + Stride), 1);
  x = _mm_insert_epi16(x, word16(p + 2 * Stride), 2);
  x = _mm_insert_epi16(x, word16(p + 3 * Stride), 3);
  x = _mm_insert_epi16(x, word16(p + 4 * Stride), 4);
  x = _mm_insert_epi16(x, word16(p + 5 * Stride), 5);
  x = _mm_insert_epi16(x, word16(p + 6 * Stride), 6);
  x = _mm_insert_epi16(x, word16(p + 7 * Stride), 7);
  return _mm256_cvtph_ps(x);
}

template <int Stride>
GGUF_INLINE Floats16 halves(const uint8_t* p) {
  return {eight_halves<Stride>(p), eight_halves<Stride>(p + 8 * Stride)};
}

GGUF_INLINE Floats16 add(const Floats16& a, float c) {
  const __m256 x = _mm256_set1_ps(c);
  return {_mm256_add_ps(a.low, x), _mm256_add_ps(a.high, x)};
}

GGUF_INLINE Floats16 times(const Floats16& a, __m256 c) {
  return {_mm256_mul_ps(a.low, c), _mm256_mul_ps(a.high, c)};
}

GGUF_INLINE Floats16 mul(const Floats16& a, float c) {
  const __m256 all = _mm256_set1_ps(c);
  return {_mm256_mul_ps(a.low, all), _mm256_mul_ps(a.high, all)};
}

GGUF_INLINE Floats16 mul_halves(const Floats16& a, const uint8_t* p) {
  const __m128 two = half_and_minus_half(p);
  return {_mm256_mul_ps(a.low, _mm256_broadcastss_ps(two)),
          _mm256_mul_ps(a.high, _mm256_broadcastss_ps(_mm_movehdup_ps(two)))};
}

GGUF_INLINE Floats16 add(const Floats16& a, const Floats16& b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

GGUF_INLINE Floats16 fma(const Floats16& a, const Floats16& b, const Floats16& c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

GGUF_INLINE float sum(const Floats16& a) {
  return sum8(_mm256_add_ps(a.low, a.high));
}

/** Eight sums. */
GGUF_INLINE __m256 eight_row_sums(const float* p) {
  __m256 four[4];
  GGUF_UNROLL
  for (int i = 0; i < 4; ++i, p += 32) {
    const __m256 a = _mm256_add_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
    const __m256 b = _mm256_add_ps(_mm256_loadu_ps(p + 16), _mm256_loadu_ps(p + 24));
    four[i] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
  }
  __m256 two[2];
  GGUF_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m256d a = _mm256_castps_pd(four[2 * i]), b = _mm256_castps_pd(four[2 * i + 1]);
    two[i] =
        _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  // Rows 0, 2, 4, 6, 1, 3, 5, 7.
  const __m256 one =
      _mm256_add_ps(_mm256_shuffle_ps(two[0], two[1], 0x88), _mm256_shuffle_ps(two[0], two[1], 0xdd));
  return _mm256_permutevar8x32_ps(one, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

GGUF_INLINE void sums(const float* p, float* y) {
  _mm256_storeu_ps(y, eight_row_sums(p));
  _mm256_storeu_ps(y + 8, eight_row_sums(p + 128));
}

GGUF_INLINE Lanes load_lanes(const float* p) {
  Lanes r{_mm256_loadu_ps(p)};
  GGUF_KEEP_IN_REGISTER("x", r.x);  // rather than to load it again for each use
  return r;
}

GGUF_INLINE void store_lanes(float* p, const Lanes& a) {
  _mm256_storeu_ps(p, a.x);
}

GGUF_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {_mm256_fmadd_ps(a.x, b.x, c.x)};
}

// ---- statistics -------------------------------------------------------------------------------------------

struct Doubles {
  __m256d low, high;
};

struct Counts {
  __m256i x;
};

GGUF_INLINE Doubles load_doubles(const float* p) {
  return {_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
}

GGUF_INLINE void store_doubles(double* p, const Doubles& a) {
  _mm256_storeu_pd(p, a.low);
  _mm256_storeu_pd(p + 4, a.high);
}

/** By a multiplication with 1, which is exact: many processors convert and add in the same units, and
 * multiply in others. */
GGUF_INLINE Doubles add(const Doubles& a, const Doubles& b) {
  __m256d one = _mm256_set1_pd(1);
  GGUF_KEEP_IN_REGISTER("x", one);
  return {_mm256_fmadd_pd(a.low, one, b.low), _mm256_fmadd_pd(a.high, one, b.high)};
}

GGUF_INLINE Doubles sub(const Doubles& a, const Doubles& b) {
  return {_mm256_sub_pd(a.low, b.low), _mm256_sub_pd(a.high, b.high)};
}

GGUF_INLINE Doubles add_square(const Doubles& a, const Doubles& c) {
  return {_mm256_fmadd_pd(a.low, a.low, c.low), _mm256_fmadd_pd(a.high, a.high, c.high)};
}

GGUF_INLINE Doubles add_rounded_square(const Doubles& a, const Doubles& c) {
  return add({_mm256_mul_pd(a.low, a.low), _mm256_mul_pd(a.high, a.high)}, c);
}

GGUF_INLINE Doubles magnitude(const Doubles& a) {
  const __m256d sign = _mm256_set1_pd(-0.0);
  return {_mm256_andnot_pd(sign, a.low), _mm256_andnot_pd(sign, a.high)};
}

GGUF_INLINE Doubles max(const Doubles& a, const Doubles& b) {
  return {_mm256_max_pd(a.low, b.low), _mm256_max_pd(a.high, b.high)};
}

GGUF_INLINE Lanes max_signed(const Lanes& a, const Lanes& b) {
  return {_mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a.x), _mm256_castps_si256(b.x)))};
}

GGUF_INLINE Lanes max_unsigned(const Lanes& a, const Lanes& b) {
  return {_mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(a.x), _mm256_castps_si256(b.x)))};
}

/** What a comparison gives is -1 as an integer. */
GGUF_INLINE Counts count_equal(const Lanes& a, const Lanes& b, const Counts& c) {
  return {_mm256_sub_epi32(c.x, _mm256_castps_si256(_mm256_cmp_ps(a.x, b.x, _CMP_EQ_OQ)))};
}

GGUF_INLINE uint32_t total(const Counts& c) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(c.x), _mm256_extracti128_si256(c.x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1));
}

/** The bins of four numbers, if these are in the range. */
GGUF_INLINE __m128i bins_in_range(__m128 x, const BinRange& range) {
  __m256d part = _mm256_sub_pd(_mm256_cvtps_pd(x), _mm256_set1_pd(range.low));
  part = _mm256_max_pd(_mm256_mul_pd(part, _mm256_set1_pd(range.scale)), _mm256_setzero_pd());
  return _mm256_cvttpd_epi32(_mm256_min_pd(part, _mm256_set1_pd(range.last)));
}

GGUF_INLINE void store_slots(uint32_t* slots, const float* p, const BinRange& range) {
  const __m256 x = _mm256_loadu_ps(p);
  const __m128i low = bins_in_range(_mm_loadu_ps(p), range), high = bins_in_range(_mm_loadu_ps(p + 4), range);
  const __m256i bin = _mm256_set_m128i(high, low);
  const __m256 is_below = _mm256_cmp_ps(x, _mm256_set1_ps(range.smallest), _CMP_LT_OQ);
  const __m256 is_above = _mm256_cmp_ps(x, _mm256_set1_ps(range.greatest), _CMP_GT_OQ);
  const __m256i above = _mm256_set1_epi32(static_cast<int>(range.n_slots - 1));
  __m256 slot = _mm256_castsi256_ps(_mm256_add_epi32(bin, _mm256_set1_epi32(1)));
  slot = _mm256_blendv_ps(_mm256_andnot_ps(is_below, slot), _mm256_castsi256_ps(above), is_above);
  _mm256_storeu_ps(reinterpret_cast<float*>(slots), slot);
}

GGUF_INLINE bool guess_slots(uint32_t* slots, const float* p, const BinRange& range) {
  const __m256 x = _mm256_loadu_ps(p);
  const SlotGuess& guess = range.guess;
  __m256 part = _mm256_fmadd_ps(x, _mm256_set1_ps(guess.factor), _mm256_set1_ps(guess.term));
  part = _mm256_max_ps(_mm256_min_ps(part, _mm256_set1_ps(guess.most)), _mm256_set1_ps(guess.least));
  const __m256i fixed = _mm256_cvttps_epi32(part);
  const __m256i decided = _mm256_and_si256(fixed, _mm256_set1_epi32(static_cast<int>(guess.decided)));
  const __m256 is_unsure = _mm256_cmp_ps(x, _mm256_set1_ps(guess.sure), _CMP_NEQ_UQ);
  const __m256 is_undecided = _mm256_castsi256_ps(_mm256_cmpeq_epi32(decided, _mm256_setzero_si256()));
  const __m128i point = _mm_cvtsi32_si128(static_cast<int>(guess.point));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(slots), _mm256_srl_epi32(fixed, point));
  return _mm256_testz_ps(is_undecided, is_unsure) != 0;
}

// ---- levels ----------------------------------------------------------------------------------------------

/**
 * Wide codes become bytes: their levels. Signed levels are converted from the top of a lane, as 2^24 times
 * the level, which the scale compensates. So scale * 2^-24 must not be subnormal: scales of linear levels
 * come from binary16 numbers.
 */
template <class Levels>
constexpr bool kFromTheTop = Levels::value(0) != 0;

/** Codes that are looked up stay unchanged; wide codes become bytes. */
template <class Levels>
GGUF_INLINE __m256i values_of_half(__m256i codes) {
  if constexpr (Codes<Levels::kBits>::kLookedUp) return codes;
  const __m256i code = _mm256_and_si256(codes, _mm256_set1_epi8((1 << Levels::kBits) - 1));
  return kFromTheTop<Levels> ? _mm256_add_epi8(code, _mm256_set1_epi8(Levels::value(0))) : code;
}

template <class Levels, bool kPaired = Codes<Levels::kBits>::kPaired>
struct Values {
  __m256i low, high;
  GGUF_INLINE explicit Values(const Codes<Levels::kBits>& c)
      : low(values_of_half<Levels>(c.low)), high(values_of_half<Levels>(c.high)) {}
};

/** Units of bfloat16 numbers: eight in the lower halves of the lanes, eight in the upper halves. */
template <class Levels>
struct Values<Levels, true> {
  __m256i a, b, c, d;
  GGUF_INLINE explicit Values(const Codes<Levels::kBits>& codes) {
    put(codes.low, a, b);
    put(codes.high, c, d);
  }
  GGUF_INLINE __m256i unit(int k) const { return k < 2 ? (k == 0 ? a : b) : (k == 2 ? c : d); }

 private:
  static GGUF_INLINE void put(__m256i codes, __m256i& first, __m256i& second) {
    const __m256i code = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    const __m256i lower =
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(kBfloat16Levels<Levels>.lower)), code);
    const __m256i upper =
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(kBfloat16Levels<Levels>.upper)), code);
    first = _mm256_unpacklo_epi8(lower, upper);
    second = _mm256_unpackhi_epi8(lower, upper);
  }
};

template <class Levels>
GGUF_INLINE Values<Levels> values(const Codes<Levels::kBits>& c) {
  return Values<Levels>(c);
}

template <class Levels, int Stride>
GGUF_INLINE auto values(const LowNibbles<Stride>& c) {
  if constexpr (Levels::kLinear) {
    return c;
  } else {
    return Values<Levels>(load_runs_of_bytes<4, Stride>(c.p));
  }
}

template <class Levels, int Stride>
GGUF_INLINE auto values(const HighNibbles<Stride>& c) {
  if constexpr (Levels::kLinear) {
    return c;
  } else {
    return Values<Levels>(shift<4>(load_runs_of_bytes<4, Stride>(c.p)));
  }
}

template <class Levels, class Row>
GGUF_INLINE Rows<Row> values(const Rows<Row>& v) {
  return {v.book, v.rows, v.signs};  // copying the struct as a whole makes GCC go through memory
}

template <class Levels>
GGUF_INLINE PackedRows values(const PackedRows& v) {
  return {v.book, v.rows, v.tops};
}

/** Eight numbers of rows, from index 8i on. */
template <class Levels, class Row>
GGUF_INLINE __m256 numbers_of_rows(const Rows<Row>& v, int i, __m256 d) {
  const __m256i signs = _mm256_set1_epi32(static_cast<int>(word32(v.signs + i / 4 * 4)));
  const int k = i % 4 * 8;
  const __m256i to_top = _mm256_setr_epi32(31 - k, 30 - k, 29 - k, 28 - k, 27 - k, 26 - k, 25 - k, 24 - k);
  const __m256 minus_d = _mm256_xor_ps(d, _mm256_set1_ps(-0.0f));
  const __m256 sign = _mm256_castsi256_ps(_mm256_sllv_epi32(signs, to_top));
  return _mm256_mul_ps(levels_of_rows(v, i), _mm256_blendv_ps(d, minus_d, sign));
}

template <class Levels>
GGUF_INLINE __m256 numbers_of_rows(const PackedRows& v, int i, __m256 d) {
  // The levels of codes without the top bit, then of those with it: byte offsets 0 and 32.
  constexpr auto& kNumbers = kLevelTable<Levels>.number;
  alignas(64) static constexpr float kTables[16] = {
      kNumbers[0], kNumbers[1], kNumbers[2], kNumbers[3], kNumbers[0], kNumbers[1], kNumbers[2], kNumbers[3],
      kNumbers[4], kNumbers[5], kNumbers[6], kNumbers[7], kNumbers[4], kNumbers[5], kNumbers[6], kNumbers[7]};
  const __m256 table = _mm256_mul_ps(_mm256_load_ps(kTables + (v.tops[i] & 8)), d);
  const __m256i row =
      _mm256_set1_epi32(static_cast<int>(word32(reinterpret_cast<const uint8_t*>(v.book + v.rows[i]))));
  return _mm256_permutevar_ps(table, _mm256_srlv_epi32(row, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14)));
}

template <class Levels, class RowsOfAKind>
GGUF_INLINE Floats16 numbers_of_unit(const RowsOfAKind& v, int unit, __m256 d) {
  return {numbers_of_rows<Levels>(v, 2 * unit, d), numbers_of_rows<Levels>(v, 2 * unit + 1, d)};
}

/** Looks up eight codes of up to three bits: those in byte `v` of each lane. */
template <class Levels>
GGUF_INLINE __m256 look_up(__m256 table, __m256i codes, int v) {
  const __m256i index = _mm256_srli_epi32(codes, 8 * v);
  return Levels::kBits <= 2 ? _mm256_permutevar_ps(table, index) : _mm256_permutevar8x32_ps(table, index);
}

template <class Levels>
GGUF_INLINE TopTrits values(const TopTrits& t) {
  return t;
}

GGUF_INLINE Floats16 look_up_unit(__m256 table, const TopTrits& t, int unit) {
  const TritsOfHalf& half = unit < 2 ? t.low : t.high;
  const int shift = unit % 2 * 16;
  return {_mm256_permutevar_ps(table, _mm256_srli_epi32(half.even, shift)),
          _mm256_permutevar_ps(table, _mm256_srli_epi32(half.odd, shift))};
}

template <class Levels>
GGUF_INLINE Floats16 look_up_unit(__m256 table, const Values<Levels>& v, int unit) {
  const __m256i codes = unit < 2 ? v.low : v.high;
  return {look_up<Levels>(table, codes, unit % 2 * 2), look_up<Levels>(table, codes, unit % 2 * 2 + 1)};
}

/** Moves byte `from` of each lane to byte `to`, and clears the others. */
GGUF_INLINE __m256i move_byte(__m256i x, int from, int to) {
  const int none = 0x808080, shift = 8 * to;
  const auto lane = [=](int i) {
    const auto others = static_cast<uint32_t>(none) << (to == 0 ? 8 : 0);
    return static_cast<int>(others | static_cast<uint32_t>(4 * i + from) << shift);
  };
  const __m128i control = _mm_setr_epi32(lane(0), lane(1), lane(2), lane(3));
  return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(control));
}

/** Eight bytes as numbers, byte `v` of each lane: their levels, or 2^24 times that (kFromTheTop). */
template <class Levels>
GGUF_INLINE __m256 convert(__m256i x, int v) {
  if constexpr (kFromTheTop<Levels>) {
    if (v == 0) return _mm256_cvtepi32_ps(_mm256_slli_epi32(x, 24));
    if (v == 3) return _mm256_cvtepi32_ps(_mm256_and_si256(x, _mm256_set1_epi32(~0xffffff)));
    return _mm256_cvtepi32_ps(move_byte(x, v, 3));
  } else {
    if (v == 0) return _mm256_cvtepi32_ps(_mm256_and_si256(x, _mm256_set1_epi32(255)));
    if (v == 3) return _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 24));
    return _mm256_cvtepi32_ps(move_byte(x, v, 0));
  }
}

template <class Levels>
GGUF_INLINE Floats16 convert_unit(const Values<Levels>& v, int unit) {
  const __m256i x = unit < 2 ? v.low : v.high;
  return {convert<Levels>(x, unit % 2 * 2), convert<Levels>(x, unit % 2 * 2 + 1)};
}

template <class Levels, bool kLookedUp = Codes<Levels::kBits>::kLookedUp>
struct Scaled;

template <class Levels>
struct Scaled<Levels, true> {
  __m256 d, table;
  GGUF_INLINE explicit Scaled(float scale)
      : d(_mm256_set1_ps(scale)), table(_mm256_mul_ps(_mm256_load_ps(kLevelTable<Levels>.number), d)) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return look_up_unit(table, v, unit);
  }
  template <class Row>
  GGUF_INLINE Floats16 operator()(const Rows<Row>& v, int unit) const {
    return numbers_of_unit<Levels>(v, unit, d);
  }
  GGUF_INLINE Floats16 operator()(const PackedRows& v, int unit) const {
    return numbers_of_unit<Levels>(v, unit, d);
  }
  GGUF_INLINE Floats16 operator()(const TopTrits& t, int unit) const { return look_up_unit(table, t, unit); }
};

GGUF_INLINE __m256i widen(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadu_si64(p));
}

template <class Levels>
struct Scaled<Levels, false> {
  __m256 d;
  GGUF_INLINE explicit Scaled(float scale) : d(_mm256_set1_ps(scale)) { GGUF_KEEP_IN_REGISTER("x", d); }
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    if constexpr (Codes<Levels::kBits>::kPaired) {
      const __m256i x = v.unit(unit), upper = _mm256_set1_epi32(~0xffff);
      return times(
          {_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)), _mm256_castsi256_ps(_mm256_and_si256(x, upper))},
          d);
    } else {
      static_assert(kFromTheTop<Levels>, "signed levels");
      return times(convert_unit(v, unit), _mm256_mul_ps(d, _mm256_set1_ps(0x1p-24f)));
    }
  }

  template <class Row>
  GGUF_INLINE Floats16 operator()(const Rows<Row>& v, int unit) const {
    return numbers_of_unit<Levels>(v, unit, d);
  }

  // Nibbles less 8: with its top bit and the sign extension inverted, a byte holds both as signed numbers.
  // The lower one stays on top of its lane, times 2^28, which the scale compensates.
  template <int Stride>
  GGUF_INLINE Floats16 operator()(const LowNibbles<Stride>& v, int unit) const {
    const uint8_t* p = v.p + Stride * unit;
    return times({_mm256_cvtepi32_ps(_mm256_slli_epi32(centred(p), 28)),
                  _mm256_cvtepi32_ps(_mm256_slli_epi32(centred(p + 8), 28))},
                 _mm256_mul_ps(d, _mm256_set1_ps(0x1p-28f)));
  }
  template <int Stride>
  GGUF_INLINE Floats16 operator()(const HighNibbles<Stride>& v, int unit) const {
    const uint8_t* p = v.p + Stride * unit;
    return times({_mm256_cvtepi32_ps(_mm256_srai_epi32(centred(p), 4)),
                  _mm256_cvtepi32_ps(_mm256_srai_epi32(centred(p + 8), 4))},
                 d);
  }

 private:
  static GGUF_INLINE __m256i centred(const uint8_t* p) {
    static_assert(!Levels::kLinear || Levels::kBits != 4 || Levels::value(0) == -8, "Offset<4>");
    return _mm256_xor_si256(_mm256_cvtepi8_epi32(_mm_loadu_si64(p)), _mm256_set1_epi32(~0x77));
  }
};

// Affine fuses: the product is exact, so one rounding gives the same result as two.
GGUF_INLINE Floats16 fused(const Floats16& level, float d, float m) {
  const __m256 scale = _mm256_set1_ps(d), offset = _mm256_set1_ps(m);
  return {_mm256_fmadd_ps(level.low, scale, offset), _mm256_fmadd_ps(level.high, scale, offset)};
}

template <class Levels, bool kLookedUp = Codes<Levels::kBits>::kLookedUp>
struct Affine;

template <class Levels>
struct Affine<Levels, true> {
  __m256 table;
  GGUF_INLINE Affine(float d, float m)
      : table(_mm256_fmadd_ps(_mm256_load_ps(kLevelTable<Levels>.number), _mm256_set1_ps(d),
                              _mm256_set1_ps(m))) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return look_up_unit(table, v, unit);
  }
};

template <class Levels>
struct Affine<Levels, false> {
  float d, m;
  GGUF_INLINE Affine(float scale, float offset) : d(scale), m(offset) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    static_assert(!kFromTheTop<Levels>, "levels without a sign");
    return fused(convert_unit(v, unit), d, m);
  }
  template <int Stride>
  GGUF_INLINE Floats16 operator()(const LowNibbles<Stride>& v, int unit) const {
    const uint8_t* p = v.p + Stride * unit;
    const __m256i nibble = _mm256_set1_epi32(15);
    return fused({_mm256_cvtepi32_ps(_mm256_and_si256(widen(p), nibble)),
                  _mm256_cvtepi32_ps(_mm256_and_si256(widen(p + 8), nibble))},
                 d, m);
  }
  template <int Stride>
  GGUF_INLINE Floats16 operator()(const HighNibbles<Stride>& v, int unit) const {
    const uint8_t* p = v.p + Stride * unit;
    return fused({_mm256_cvtepi32_ps(_mm256_srli_epi32(widen(p), 4)),
                  _mm256_cvtepi32_ps(_mm256_srli_epi32(widen(p + 8), 4))},
                 d, m);
  }
};

// ---- storing ---------------------------------------------------------------------------------------------

/** A line. */
template <Store kStore>
GGUF_INLINE void store512(void* p, __m256i x, __m256i y) {
  __m256i* const half = static_cast<__m256i*>(p);
  if constexpr (kStore == Store::kPlain) {
    _mm256_storeu_si256(half, x);
    _mm256_storeu_si256(half + 1, y);
  } else if (is_line(p)) {
    _mm256_stream_si256(half, x);
    _mm256_stream_si256(half + 1, y);
  } else {
    __m128i* const part = static_cast<__m128i*>(p);
    _mm_stream_si128(part, _mm256_castsi256_si128(x));
    _mm_stream_si128(part + 1, _mm256_extracti128_si256(x, 1));
    _mm_stream_si128(part + 2, _mm256_castsi256_si128(y));
    _mm_stream_si128(part + 3, _mm256_extracti128_si256(y, 1));
  }
}

GGUF_INLINE __m256i to_halves(const Floats16& a) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT)),
                                 _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT), 1);
}

/** In each 128-bit lane first the lower halves of the four numbers, then the upper ones. */
GGUF_INLINE __m256i by_halves(__m256 x) {
  const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  return _mm256_shuffle_epi8(_mm256_castps_si256(x), _mm256_broadcastsi128_si256(order));
}

/** Sixteen bfloat16: rounded to nearest even, NaNs quiet. */
GGUF_INLINE __m256i to_bfloat16(const Floats16& a) {
  const __m256i low = by_halves(a.low), high = by_halves(a.high);
  const __m256i upper = _mm256_unpackhi_epi64(low, high);
  // Less 2^15, because words are compared as signed ones: from 1 on they round up, from 0 on if upper is odd.
  const __m256i lower =
      _mm256_xor_si256(_mm256_unpacklo_epi64(low, high), _mm256_set1_epi16(static_cast<short>(0x8000)));
  const __m256i most =
      _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_and_si256(upper, _mm256_set1_epi16(1)));
  const __m256i minus_up = _mm256_cmpgt_epi16(lower, most);
  __m256i words = _mm256_sub_epi16(upper, minus_up);
  if (_mm256_movemask_ps(_mm256_cmp_ps(a.low, a.high, _CMP_UNORD_Q)) != 0) {
    const __m256i is_nan =
        _mm256_packs_epi32(_mm256_castps_si256(_mm256_cmp_ps(a.low, a.low, _CMP_UNORD_Q)),
                           _mm256_castps_si256(_mm256_cmp_ps(a.high, a.high, _CMP_UNORD_Q)));
    words = _mm256_blendv_epi8(words, _mm256_or_si256(upper, _mm256_set1_epi16(0x40)), is_nan);
  }
  return _mm256_permute4x64_epi64(words, _MM_SHUFFLE(3, 1, 2, 0));
}

constexpr int kConverted = 32;

template <Out kOut, Store kStore>
GGUF_INLINE void convert(uint16_t* y, const float* x) {
  const Floats16 a = load_f32(x), b = load_f32(x + 16);
  if constexpr (kOut == Out::kFloat16) {
    store512<kStore>(y, to_halves(a), to_halves(b));
  } else {
    store512<kStore>(y, to_bfloat16(a), to_bfloat16(b));
  }
}

template <Store kStore>
GGUF_INLINE void store(float* y, const Floats16& a, const Floats16& b) {
  store512<kStore>(y, _mm256_castps_si256(a.low), _mm256_castps_si256(a.high));
  store512<kStore>(y + 16, _mm256_castps_si256(b.low), _mm256_castps_si256(b.high));
}

/** Stores 16 numbers in memory that is aligned to 64 bytes. */
GGUF_INLINE void store_aligned(float* y, const Floats16& a) {
  _mm256_store_ps(y, a.low);
  _mm256_store_ps(y + 8, a.high);
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
