// Levels as bytes, and exact sums of their products with int8, in AVX-512 with VNNI. Its vpdpbusd adds four
// products of bytes without a sign and int8 to a sum of 32 bits.
#pragma once

#include "dequant/simd/avx512.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

constexpr int kByteKinds = 1;
template <class Levels>
constexpr int kByteKind = 0;
template <class Levels>
constexpr int kByteBias = -least_level<Levels>();
constexpr int kByteVectors = 6;

/** Bit i is byte i: all ones, or zero. */
GGUF_INLINE __m256i spread_32(uint32_t bits) {
  return _mm256_movm_epi8(bits);
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

/** As RowBits, in the order of the row: quadword k has the rows of codes 8k to 8k + 7. */
template <class Levels, int kColumns>
struct RowBitsInOrder {
  alignas(64) uint16_t row[32] = {};
  alignas(64) uint8_t code[64] = {}, sign[64] = {};  // positions of their lowest bits in the quadword

  constexpr RowBitsInOrder() {
    constexpr int kBits = Levels::kBits - 1;
    for (int i = 0; i < 64; ++i) {
      row[i / 8 * 4 + i % 8 / kColumns] = static_cast<uint16_t>(i / kColumns);
      code[i] = static_cast<uint8_t>(16 * (i % 8 / kColumns) + kBits * (i % kColumns));
      sign[i] = static_cast<uint8_t>((i - kBits) & 63);  // to the bit above the code
    }
  }
};

template <class Levels, int kColumns>
GGUF_INLINE CodesInOrder<Levels::kBits> unpack_rows_in_order(__m512i packed, const uint8_t* signs) {
  using Bits = RowBitsInOrder<Levels, kColumns>;
  const __m512i fours = _mm512_permutexvar_epi16(load512(kRowBits<Bits>.row), packed);
  const __m512i codes = _mm512_multishift_epi64_epi8(load512(kRowBits<Bits>.code), fours);
  const __m512i tops = _mm512_multishift_epi64_epi8(load512(kRowBits<Bits>.sign),
                                                    _mm512_set1_epi64(static_cast<int64_t>(word64(signs))));
  const __m512i both =
      select<(1 << (Levels::kBits - 1)) - 1>(Codes<Levels::kBits>{codes}, Codes<Levels::kBits>{tops}).x;
  return {_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1)};
}

template <class Levels, class Rows>
GGUF_INLINE CodesInOrder<Levels::kBits> gather8(const Rows& rows, int first, const uint8_t* signs, ToBytes) {
  return unpack_rows_in_order<Levels, 8>(_mm512_castsi128_si512(rows.eight(first)), signs);
}

template <class Levels, class Rows>
GGUF_INLINE CodesInOrder<Levels::kBits> gather16(const Rows& rows, int first, const uint8_t* signs, ToBytes) {
  return unpack_rows_in_order<Levels, 4>(_mm512_castsi256_si512(rows.sixteen(first)), signs);
}

// ---- one row and one vector ------------------------------------------------------------------------------

GGUF_INLINE __m512i add_pairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
GGUF_INLINE __m512i add_fours(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/** In each quarter the sums of 16 bytes: four for each 16 of 2 x 32, or two of 4 x 32. */
template <int kRun>
struct DotSums {
  __m512i x;
};

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const int8_t* x) {
  return {_mm512_dpbusd_epi32(_mm512_setzero_si512(), join(a.x, b.x), load512(x))};
}

template <int kRun>
GGUF_INLINE DotSums<kRun> join(const DotSums<kRun>& a, const DotSums<kRun>& b) {
  return {add_pairs(a.x, b.x)};
}

/** Each is the sum of two quarters: runs 0, 2, 4, 6 of the lower two, runs 1, 3, 5, 7 of the upper two. */
GGUF_INLINE Ints8 eight_sums(const DotSums<32>& a, const DotSums<32>& b) {
  const __m512i quarters = add_fours(a.x, b.x);
  const __m256i even = _mm512_castsi512_si256(quarters), odd = _mm512_extracti64x4_epi64(quarters, 1);
  const __m256i sums = _mm256_add_epi32(_mm256_permute2x128_si256(even, odd, 0x20),
                                        _mm256_permute2x128_si256(even, odd, 0x31));
  return {_mm256_permutevar8x32_epi32(sums, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))};
}

GGUF_INLINE void sixteen_sums(const DotSums<16>& a, const DotSums<16>& b, Ints8 (&sums)[2]) {
  const __m512i in_turn = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i all = _mm512_permutexvar_epi32(in_turn, add_fours(a.x, b.x));
  sums[0] = {_mm512_castsi512_si256(all)};
  sums[1] = {_mm512_extracti64x4_epi64(all, 1)};
}

// ---- rows and vectors ------------------------------------------------------------------------------------

struct IntLanes {
  __m512i x;
};

GGUF_INLINE IntLanes broadcast_int(const void* p) {
  return {_mm512_set1_epi32(static_cast<int>(word32(static_cast<const uint8_t*>(p))))};
}

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors]) {
  GGUF_UNROLL
  for (int i = 0; i < kRun / 4; ++i) {
    const __m512i row = load512(w + 64 * i);
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[v].x = _mm512_dpbusd_epi32(sums[v].x, row, broadcast_int(x + 4 * (i * kVectors + v)).x);
    }
  }
}

GGUF_INLINE Lanes to_lanes(const IntLanes& a) {
  return {_mm512_cvtepi32_ps(a.x)};
}

GGUF_INLINE Lanes broadcast(const void* p) {
  return {_mm512_castsi512_ps(broadcast_int(p).x)};
}

GGUF_INLINE Lanes mul(const Lanes& a, const Lanes& b) {
  return {_mm512_mul_ps(a.x, b.x)};
}

GGUF_INLINE Lanes add(const Lanes& a, const Lanes& b) {
  return {_mm512_add_ps(a.x, b.x)};
}

/** Four words of four rows, which are four apart. */
GGUF_INLINE __m512i four_words(const uint8_t* rows, uint64_t stride, int row) {
  __m512i r = _mm512_castsi128_si512(load128(rows + row * stride));
  r = _mm512_inserti32x4(r, load128(rows + (row + 4) * stride), 1);
  r = _mm512_inserti32x4(r, load128(rows + (row + 8) * stride), 2);
  return _mm512_inserti32x4(r, load128(rows + (row + 12) * stride), 3);
}

GGUF_INLINE void transpose_four(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  const __m512i r0 = four_words(rows, stride, 0), r1 = four_words(rows, stride, 1),
                r2 = four_words(rows, stride, 2), r3 = four_words(rows, stride, 3);
  const __m512i a = _mm512_unpacklo_epi32(r0, r1), b = _mm512_unpackhi_epi32(r0, r1),
                c = _mm512_unpacklo_epi32(r2, r3), d = _mm512_unpackhi_epi32(r2, r3);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi64(a, c));
  _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi64(a, c));
  _mm512_storeu_si512(to + 128, _mm512_unpacklo_epi64(b, d));
  _mm512_storeu_si512(to + 192, _mm512_unpackhi_epi64(b, d));
}

template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += 4) transpose_four(rows + 4 * i, stride, to + 64 * i);
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
