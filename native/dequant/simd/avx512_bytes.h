// Levels as bytes, and exact sums of their products with int8, in AVX-512 with VNNI. Its vpdpbusd adds four
// products of bytes without a sign and int8 to a sum of 32 bits.
#pragma once

#include "dequant/simd/avx512.h"
#include "dequant/simd/x86_bytes.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

constexpr int kByteKinds = 1;
constexpr bool kMultipliesCodesInKernels = true;
template <class Levels>
constexpr int kByteKind = 0;
template <class Levels>
constexpr int kByteBias = -least_level<Levels>();
constexpr bool kSignedTiles = false;
template <int kKind>
constexpr int kLevelBytes = 1;
constexpr int kRowRegisters = 2;
constexpr int kByteVectors = 6;

// Codes that become bytes stay in the order of the row.

// ---- loading codes ---------------------------------------------------------------------------------------

template <int Bits>
struct CodesInOrder {
  __m512i x;
};

template <int Bits, int Stride>
GGUF_INLINE auto load_runs(const uint8_t* p, ToBytes) {
  if constexpr (Bits == 4) {
    return LowNibblesInOrder<Stride>{p};
  } else if constexpr (Stride == 16) {
    return CodesInOrder<Bits>{load512(p)};
  } else {
    const __m512i first = _mm512_inserti32x4(_mm512_castsi128_si512(load128(p)), load128(p + Stride), 1);
    return CodesInOrder<Bits>{_mm512_inserti32x4(_mm512_inserti32x4(first, load128(p + 2 * Stride), 2),
                                                 load128(p + 3 * Stride), 3)};
  }
}

template <int Bits>
GGUF_INLINE auto load(const uint8_t* p, ToBytes to) {
  return load_runs<Bits, 16>(p, to);
}

template <int Bits>
GGUF_INLINE CodesInOrder<Bits> load_twice(const uint8_t* p, ToBytes) {
  return {_mm512_broadcast_i64x4(load256(p))};
}

template <int Bits>
GGUF_INLINE CodesInOrder<Bits> spread_bits(uint64_t bits, ToBytes) {
  return {_mm512_movm_epi8(bits)};
}

/** Two bytes in each quadword, and from there eight pairs of bits. */
template <int Bits>
GGUF_INLINE CodesInOrder<Bits> load_packed(const uint8_t* p, ToBytes) {
  const __m512i shifts = _mm512_set1_epi64(0x0e0c0a0806040200);
  return {_mm512_multishift_epi64_epi8(shifts, _mm512_cvtepu16_epi64(load128(p)))};
}

/** Every eight bytes twice, and the second time their high nibbles. */
template <int Bits>
GGUF_INLINE CodesInOrder<Bits> load_nibble_runs(const uint8_t* p, ToBytes) {
  const __m512i twice =
      _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), _mm512_castsi256_si512(load256(p)));
  return {_mm512_srlv_epi64(twice, _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4))};
}

// ---- codes -----------------------------------------------------------------------------------------------

template <int A, int B, int Bits>
GGUF_INLINE CodesInOrder<Bits> shift_halves(const CodesInOrder<Bits>& c) {
  constexpr int a = A < 0 ? -A : A, b = B < 0 ? -B : B;
  static_assert((A >= 0) == (B >= 0), "both in the same direction");
  if constexpr (a == b) return {A < 0 ? _mm512_slli_epi16(c.x, a) : _mm512_srli_epi16(c.x, a)};
  const __m512i counts = join(_mm256_set1_epi16(a), _mm256_set1_epi16(b));
  return {A < 0 ? _mm512_sllv_epi16(c.x, counts) : _mm512_srlv_epi16(c.x, counts)};
}

template <int N, int Bits>
GGUF_INLINE CodesInOrder<Bits> shift(const CodesInOrder<Bits>& c) {
  return shift_halves<N, N>(c);
}

template <int Mask, int Bits>
GGUF_INLINE CodesInOrder<Bits> select(const CodesInOrder<Bits>& a, const CodesInOrder<Bits>& b) {
  return {select<Mask>(Codes<Bits>{a.x}, Codes<Bits>{b.x}).x};
}

struct TritsInOrder {
  __m512i x;
};

GGUF_INLINE TritsInOrder load_trits(const uint8_t* p, ToBytes) {
  return {join(load256(p), last_trits(p + 32))};
}

GGUF_INLINE TritsInOrder times3(const TritsInOrder& t) {
  return {_mm512_add_epi8(t.x, _mm512_add_epi8(t.x, t.x))};
}

/** 3x >> 8, as three quarters of a byte less 1: their upper two bits. Averages are rounded up. */
GGUF_INLINE CodesInOrder<2> top_trits(const TritsInOrder& t) {
  const __m512i less = _mm512_subs_epu8(t.x, _mm512_set1_epi8(1));
  const __m512i half = _mm512_avg_epu8(less, _mm512_setzero_si512());
  return {_mm512_srli_epi16(_mm512_avg_epu8(less, half), 6)};
}

template <class Levels>
GGUF_INLINE CodesInOrder<Levels::kBits> values(const CodesInOrder<Levels::kBits>& c) {
  return c;
}

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
  return select<(1 << (Levels::kBits - 1)) - 1>(CodesInOrder<Levels::kBits>{codes},
                                                CodesInOrder<Levels::kBits>{tops});
}

template <class Levels, class Rows>
GGUF_INLINE CodesInOrder<Levels::kBits> gather8(const Rows& rows, int first, const uint8_t* signs, ToBytes) {
  return unpack_rows_in_order<Levels, 8>(_mm512_castsi128_si512(rows.eight(first)), signs);
}

template <class Levels, class Rows>
GGUF_INLINE CodesInOrder<Levels::kBits> gather16(const Rows& rows, int first, const uint8_t* signs, ToBytes) {
  return unpack_rows_in_order<Levels, 4>(_mm512_castsi256_si512(rows.sixteen(first)), signs);
}

// ---- bytes -----------------------------------------------------------------------------------------------

/** Half of a register. The other half is often what is put next: then the two are multiplied as they are. */
struct Bytes32 {
  __m512i x;
  int half;
};

/** The levels of 64 codes, with kByteBias added. */
template <class Levels>
GGUF_INLINE __m512i levels_of_codes(__m512i codes) {
  constexpr int kBias = kByteBias<Levels>;
  if constexpr (std::is_same_v<Levels, Signed8>) {
    static_assert(kBias == 128, "the top bit");
    return _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
  } else {
    const __m512i code = _mm512_and_si512(codes, _mm512_set1_epi8((1 << Levels::kBits) - 1));
    if constexpr (Levels::kLinear) {
      static_assert(kBias == -Levels::value(0), "bytes are codes");
      return code;
    } else {
      return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load128(kByteLevels<Levels, kBias>.byte)), code);
    }
  }
}

template <class Levels, int Bits>
GGUF_INLINE Bytes32 level_bytes(const CodesInOrder<Bits>& v, int unit) {
  return {levels_of_codes<Levels>(v.x), unit / 2};
}

template <class Levels, int Bits>
GGUF_INLINE Bytes32 level_bytes(const CodesInOrder<Bits>& a, int i, const CodesInOrder<Bits>& b, int k) {
  const __m512i from = _mm512_setr_epi64(2 * i, 2 * i + 1, 8 + 2 * k, 9 + 2 * k, 0, 0, 0, 0);
  return {levels_of_codes<Levels>(_mm512_permutex2var_epi64(a.x, from, b.x)), 0};
}

/** The low nibbles of 32 bytes, then the high ones. */
template <class Levels, int Stride>
GGUF_INLINE __m512i low_and_high(const uint8_t* p) {
  static_assert(Stride == 16, "32 bytes in a row");
  const __m512i counts = join(_mm256_setzero_si256(), _mm256_set1_epi16(4));
  return levels_of_codes<Levels>(_mm512_srlv_epi16(_mm512_broadcast_i64x4(load256(p)), counts));
}
template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const LowNibblesInOrder<Stride>& v, int unit) {
  return {low_and_high<Levels, Stride>(v.p + Stride * unit), 0};
}
template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const HighNibblesInOrder<Stride>& v, int unit) {
  return {low_and_high<Levels, Stride>(v.p + Stride * unit), 1};
}
/** Of two runs: the low nibbles of the first, its high ones, and those of the second. */
template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const LowNibblesInOrder<Stride>& v, int unit,
                                const HighNibblesInOrder<Stride>&, int) {
  const uint8_t* const first = v.p + Stride * (unit & ~1);
  const __m512i two =
      _mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(load128(first)), 0xff00, load128(first + Stride));
  const __m512i counts = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4);
  return {levels_of_codes<Levels>(_mm512_srlv_epi32(two, counts)), unit & 1};
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const SignedBytes& v, int unit) {
  return {levels_of_codes<Levels>(_mm512_castsi256_si512(load256(v.p + 16 * unit))), 0};
}

template <class Levels>
GGUF_INLINE void store_bytes(uint8_t* to, const Bytes32& a) {
  store256(to, a.half == 0 ? _mm512_castsi512_si256(a.x) : _mm512_extracti64x4_epi64(a.x, 1));
}

/** The lower half of a and the upper half of b: in GCC in the way that it knows to be a if both are a. */
GGUF_INLINE __m512i join_outer(__m512i a, __m512i b) {
#if defined(__GNUC__) && !defined(__clang__)
  using Quadwords = long long __attribute__((vector_size(64)));
  return reinterpret_cast<__m512i>(__builtin_shuffle(
      reinterpret_cast<Quadwords>(a), reinterpret_cast<Quadwords>(b), Quadwords{0, 1, 2, 3, 12, 13, 14, 15}));
#else
  return _mm512_mask_mov_epi64(a, 0xf0, b);
#endif
}

GGUF_INLINE __m512i join(const Bytes32& a, const Bytes32& b) {
  if (a.half == 0 && b.half == 1) return join_outer(a.x, b.x);
  if (a.half == 0) return join(_mm512_castsi512_si256(a.x), _mm512_castsi512_si256(b.x));
  if (b.half == 1) return _mm512_shuffle_i64x2(a.x, b.x, _MM_SHUFFLE(3, 2, 3, 2));
  return _mm512_shuffle_i64x2(a.x, b.x, _MM_SHUFFLE(1, 0, 3, 2));
}

// ---- one row and one vector ------------------------------------------------------------------------------

GGUF_INLINE __m512i add_pairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
GGUF_INLINE __m512i add_fours(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/** Of 4 x 32 bytes: with runs of 32 four sums of each, to be added, in a quarter; with runs of 16 in each
 * quarter two sums of 16 bytes of each. */
template <int kRun>
struct DotSums {
  __m512i x;
};

GGUF_INLINE __m512i dot_64(__m512i sums, __m512i w, const int8_t* x) {
  return _mm512_dpbusd_epi32(sums, w, load512(x));
}

/** The first 16 bytes of each of four runs, and the last. */
GGUF_INLINE DotSums<32> dot_halves(__m512i first, __m512i last, const DotColumns<32>& x) {
  return {dot_64(dot_64(_mm512_setzero_si512(), first, x.codes), last, x.last_halves)};
}

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const Bytes32& c, const Bytes32& d,
                              const DotColumns<kRun>& x) {
  const __m512i ab = join(a, b), cd = join(c, d);
  if constexpr (kRun == 32) {
    return dot_halves(_mm512_shuffle_i64x2(ab, cd, _MM_SHUFFLE(2, 0, 2, 0)),
                      _mm512_shuffle_i64x2(ab, cd, _MM_SHUFFLE(3, 1, 3, 1)), x);
  } else {
    const __m512i zero = _mm512_setzero_si512();
    return {add_pairs(dot_64(zero, ab, x.codes), dot_64(zero, cd, x.codes + 64))};
  }
}

/** All of four units. */
template <int Bits>
GGUF_INLINE __m512i all_codes(const CodesInOrder<Bits>& c) {
  return c.x;
}
template <int Stride>
GGUF_INLINE __m512i all_codes(const LowNibblesInOrder<Stride>& c) {
  return load_runs<8, Stride>(c.p, ToBytes{}).x;
}
template <int Stride>
GGUF_INLINE __m512i all_codes(const HighNibblesInOrder<Stride>& c) {
  return _mm512_srli_epi16(load_runs<8, Stride>(c.p, ToBytes{}).x, 4);
}

/** Of 4 x 32 bytes: unit k of a, then unit k of b. */
template <class Levels, class A, class B>
GGUF_INLINE DotSums<32> dot_rows(const A& a, const B& b, const DotColumns<32>& x) {
  return dot_halves(levels_of_codes<Levels>(all_codes(a)), levels_of_codes<Levels>(all_codes(b)), x);
}

/** Units 0 and 2 of both, or 1 and 3. */
template <int kFirst, int Bits>
GGUF_INLINE __m512i every_other(const CodesInOrder<Bits>& a, const CodesInOrder<Bits>& b) {
  constexpr int i = 2 * kFirst;
  return _mm512_permutex2var_epi64(
      a.x, _mm512_setr_epi64(i, i + 1, i + 8, i + 9, i + 4, i + 5, i + 12, i + 13), b.x);
}
/** Of 4 x 32 bytes: units 0 and 1 of a, those of b, then units 2 and 3 of a, those of b. */
template <class Levels, int Bits>
GGUF_INLINE DotSums<32> dot_pairs(const CodesInOrder<Bits>& a, const CodesInOrder<Bits>& b,
                                  const DotColumns<32>& x) {
  return dot_halves(levels_of_codes<Levels>(every_other<0>(a, b)),
                    levels_of_codes<Levels>(every_other<1>(a, b)), x);
}
/** Nibbles: high ones stay where they are, which makes sums 16 times as large. These are shifted rather than
 * bytes. */
template <class Levels, int Stride>
GGUF_INLINE DotSums<32> dot_pairs(const LowNibblesInOrder<Stride>& a, const HighNibblesInOrder<Stride>&,
                                  const DotColumns<32>& x) {
  static_assert(Levels::kLinear && Levels::kBits == 4, "bytes are nibbles");
  const __m512i mask = _mm512_broadcast_i64x4(_mm256_setr_m128i(_mm_set1_epi8(15), _mm_set1_epi8(-16)));
  // Each of two runs of 16 bytes twice: without an instruction that permutes.
  const auto nibbles = [&](int unit) GGUF_INLINE_LAMBDA {
    const uint8_t* const first = a.p + Stride * unit;
    const __m512i two = _mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(load128(first)), 0xff00,
                                                    load128(first + 2 * Stride));
    return _mm512_and_si512(two, mask);
  };
  const __m512i counts = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4);
  return {_mm512_srav_epi32(dot_halves(nibbles(0), nibbles(1), x).x, counts)};
}

/** The first of each quarter, then the second of each, and so on. */
GGUF_INLINE __m512i in_turn(__m512i sums) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                  sums);
}

GGUF_INLINE Ints8 eight_sums(const DotSums<32>& a, const DotSums<32>& b) {
  const __m512i pairs = in_turn(add_pairs(a.x, b.x));
  return {_mm256_add_epi32(_mm512_castsi512_si256(pairs), _mm512_extracti64x4_epi64(pairs, 1))};
}

GGUF_INLINE void sixteen_sums(const DotSums<16>& a, const DotSums<16>& b, Ints8 (&sums)[2]) {
  const __m512i all = in_turn(add_fours(a.x, b.x));
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
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  GGUF_UNROLL
  for (int i = 0; i < kRun / 4; ++i) {
    const uint8_t* const words = w + 64 * kRowRegisters * i;
    const __m512i first = load512(words), second = load512(words + 64);
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __m512i word = broadcast_int(x + 4 * (i * kVectors + v)).x;
      sums[v][0].x = _mm512_dpbusd_epi32(sums[v][0].x, first, word);
      sums[v][1].x = _mm512_dpbusd_epi32(sums[v][1].x, second, word);
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

/** Of 16 rows. */
GGUF_INLINE void transpose_four(const uint8_t* rows, uint64_t stride, __m512i (&words)[4]) {
  const __m512i r0 = four_words(rows, stride, 0), r1 = four_words(rows, stride, 1),
                r2 = four_words(rows, stride, 2), r3 = four_words(rows, stride, 3);
  const __m512i a = _mm512_unpacklo_epi32(r0, r1), b = _mm512_unpackhi_epi32(r0, r1),
                c = _mm512_unpacklo_epi32(r2, r3), d = _mm512_unpackhi_epi32(r2, r3);
  words[0] = _mm512_unpacklo_epi64(a, c);
  words[1] = _mm512_unpackhi_epi64(a, c);
  words[2] = _mm512_unpacklo_epi64(b, d);
  words[3] = _mm512_unpackhi_epi64(b, d);
}

template <int kWords, int kRegisters = kRowRegisters>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += 4) {
    GGUF_UNROLL
    for (int k = 0; k < kRegisters; ++k) {
      __m512i words[4];
      transpose_four(rows + 16 * k * stride + 4 * i, stride, words);
      GGUF_UNROLL
      for (int j = 0; j < 4; ++j) _mm512_storeu_si512(to + 64 * (kRegisters * (i + j) + k), words[j]);
    }
  }
}

struct CodeTransposer {
  static constexpr int kWords = 4;
  template <int Bits>
  using Words = CodesInOrder<Bits>[kWords];

  template <int Bits>
  static GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, Words<Bits>& words) {
    __m512i of_rows[kWords];
    transpose_four(rows, stride, of_rows);
    GGUF_UNROLL
    for (int i = 0; i < kWords; ++i) words[i] = {of_rows[i]};
  }
  template <class Levels, int Bits>
  static GGUF_INLINE void store(uint8_t* to, int i, const CodesInOrder<Bits>& codes) {
    _mm512_storeu_si512(to + 64 * kRowRegisters * i, levels_of_codes<Levels>(codes.x));
  }
};

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
