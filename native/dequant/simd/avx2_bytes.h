// Levels as bytes, and exact sums of their products with int8, in AVX2.
//
// vpmaddubsw multiplies bytes without a sign with bytes that have one, and adds two products in 16 bits,
// which would saturate for large bytes. So there are kinds of bytes: how many of these sums fit 16 bits
// together.
#pragma once

#include "dequant/simd/avx2.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

/** The most that two bytes times int8 add up to in 16 bits. */
constexpr int kMostPairs = INT16_MAX / (2 * 127);

template <class Levels>
constexpr int kLevelRange = greatest_level<Levels>() - least_level<Levels>();

/** Levels of a wide range stay signed: kind 0. */
template <class Levels>
constexpr int kByteBias = kLevelRange<Levels> <= kMostPairs ? -least_level<Levels>() : 0;

/** Sums of two products that are added in 16 bits, for each kind. */
constexpr int kByteKinds = 5;
constexpr int kPairs[kByteKinds] = {1, 1, 2, 4, 8};

template <class Levels>
constexpr int kByteKind = kLevelRange<Levels> > kMostPairs       ? 0
                          : kLevelRange<Levels> * 2 > kMostPairs ? 1
                          : kLevelRange<Levels> * 4 > kMostPairs ? 2
                          : kLevelRange<Levels> * 8 > kMostPairs ? 3
                                                                 : 4;
constexpr int kByteVectors = 4;

/** Bit i is byte i: all ones, or zero. */
GGUF_INLINE __m256i spread_32(uint32_t bits) {
  const __m256i from = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                        2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), from);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}

/** Sums of two products, in 16 bits. */
template <int kKind>
GGUF_INLINE __m256i pair_sums(__m256i w, __m256i x) {
  if constexpr (kKind == 0) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_maddubs_epi16(w, x);
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END

#include "dequant/simd/x86_bytes.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

GGUF_INLINE __m256i four_rows(const uint64_t* book, const uint16_t* rows) {
  const __m128i low = words128(book[rows[0]], book[rows[1]]), high = words128(book[rows[2]], book[rows[3]]);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

template <class Levels, const auto& kBook, int kCount>
GGUF_INLINE CodesInOrder<Levels::kBits> gather8(const BookRows<kBook, kCount>& rows, int first,
                                                const uint8_t* signs, ToBytes to) {
  const uint16_t* const number = rows.number + first;
  const CodesInOrder<Levels::kBits> codes = {four_rows(kBook.row, number), four_rows(kBook.row, number + 4)};
  return select<(1 << (Levels::kBits - 1)) - 1>(codes, spread_bits<Levels::kBits>(word64(signs), to));
}

GGUF_INLINE uint64_t row_pair(const uint32_t* book, const uint16_t* rows) {
  return book[rows[0]] | static_cast<uint64_t>(book[rows[1]]) << 32;
}

GGUF_INLINE __m256i eight_rows(const uint32_t* book, const uint16_t* rows) {
  const __m128i low = words128(row_pair(book, rows), row_pair(book, rows + 2)),
                high = words128(row_pair(book, rows + 4), row_pair(book, rows + 6));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

template <class Levels, const auto& kBook, int kCount>
GGUF_INLINE CodesInOrder<Levels::kBits> gather16(const BookRows<kBook, kCount>& rows, int first,
                                                 const uint8_t* signs, ToBytes to) {
  const uint16_t* const number = rows.number + first;
  const CodesInOrder<Levels::kBits> codes = {eight_rows(kBook.row, number),
                                             eight_rows(kBook.row, number + 8)};
  return select<(1 << (Levels::kBits - 1)) - 1>(codes, spread_bits<Levels::kBits>(word64(signs), to));
}

// ---- one row and one vector ------------------------------------------------------------------------------

GGUF_INLINE __m256i add_pairs(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
GGUF_INLINE __m256i add_fours(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/** Of 2 x 32 bytes two sums for each of the lower 16 in the lower half, and for each of the upper 16 in the
 * upper half; or one sum each of 4 x 32. */
template <int kRun>
struct DotSums {
  __m256i x;
};

template <int kKind>
GGUF_INLINE __m256i sums_of_four(__m256i w, __m256i x) {
  return _mm256_madd_epi16(pair_sums<kKind>(w, x), _mm256_set1_epi16(1));
}

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const int8_t* x) {
  return {add_pairs(sums_of_four<kKind>(a.x, load256(x)), sums_of_four<kKind>(b.x, load256(x + 32)))};
}

template <int kRun>
GGUF_INLINE DotSums<kRun> join(const DotSums<kRun>& a, const DotSums<kRun>& b) {
  return {add_fours(a.x, b.x)};
}

GGUF_INLINE Ints8 eight_sums(const DotSums<32>& a, const DotSums<32>& b) {
  return {
      _mm256_add_epi32(_mm256_permute2x128_si256(a.x, b.x, 0x20), _mm256_permute2x128_si256(a.x, b.x, 0x31))};
}

GGUF_INLINE void sixteen_sums(const DotSums<16>& a, const DotSums<16>& b, Ints8 (&sums)[2]) {
  const __m256i in_turn = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  sums[0] = {_mm256_permutevar8x32_epi32(a.x, in_turn)};
  sums[1] = {_mm256_permutevar8x32_epi32(b.x, in_turn)};
}

// ---- rows and vectors ------------------------------------------------------------------------------------

struct IntLanes {
  __m256i x;
};

GGUF_INLINE IntLanes broadcast_int(const void* p) {
  return {_mm256_set1_epi32(static_cast<int>(word32(static_cast<const uint8_t*>(p))))};
}

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors]) {
  constexpr int kWords = kRun / 4, kTogether = kPairs[kKind] < kWords ? kPairs[kKind] : kWords;
  GGUF_UNROLL
  for (int first = 0; first < kWords; first += kTogether) {
    __m256i pairs[kVectors];
    GGUF_UNROLL
    for (int i = first; i < first + kTogether; ++i) {
      const __m256i row = load256(w + 32 * i);
      GGUF_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const __m256i two = pair_sums<kKind>(row, broadcast_int(x + 4 * (i * kVectors + v)).x);
        pairs[v] = i == first ? two : _mm256_add_epi16(pairs[v], two);
        GGUF_KEEP_IN_REGISTER("x", pairs[v]);  // or products wait in memory, to be added in another order
      }
    }
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[v].x = _mm256_add_epi32(sums[v].x, _mm256_madd_epi16(pairs[v], _mm256_set1_epi16(1)));
      GGUF_KEEP_IN_REGISTER("x", sums[v].x);
    }
  }
}

GGUF_INLINE Lanes to_lanes(const IntLanes& a) {
  return {_mm256_cvtepi32_ps(a.x)};
}

GGUF_INLINE Lanes broadcast(const void* p) {
  return {_mm256_castsi256_ps(broadcast_int(p).x)};
}

GGUF_INLINE Lanes mul(const Lanes& a, const Lanes& b) {
  return {_mm256_mul_ps(a.x, b.x)};
}

GGUF_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  return {_mm256_add_ps(a.x, b.x)};
}

/** Four words of two rows, which are four apart. */
GGUF_INLINE __m256i four_words(const uint8_t* rows, uint64_t stride, int row) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(rows + row * stride)),
                                 load128(rows + (row + 4) * stride), 1);
}

GGUF_INLINE void transpose_four(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  const __m256i r0 = four_words(rows, stride, 0), r1 = four_words(rows, stride, 1),
                r2 = four_words(rows, stride, 2), r3 = four_words(rows, stride, 3);
  const __m256i a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpackhi_epi32(r0, r1),
                c = _mm256_unpacklo_epi32(r2, r3), d = _mm256_unpackhi_epi32(r2, r3);
  store256(to, _mm256_unpacklo_epi64(a, c));
  store256(to + 32, _mm256_unpackhi_epi64(a, c));
  store256(to + 64, _mm256_unpacklo_epi64(b, d));
  store256(to + 96, _mm256_unpackhi_epi64(b, d));
}

template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += 4) transpose_four(rows + 4 * i, stride, to + 32 * i);
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
