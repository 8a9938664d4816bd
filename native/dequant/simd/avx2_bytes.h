// Levels as bytes, and exact sums of their products with int8, in AVX2.
//
// vpmaddubsw multiplies bytes without a sign with bytes that have one, and adds two products in 16 bits,
// which would saturate for large bytes. So there are kinds of bytes: how many of these sums fit 16 bits
// together. With GGUF_VNNI, and inside its target region, there is one kind: vpdpbusd adds to 32 bits.
#pragma once

#include "dequant/simd/avx2.h"
#include "dequant/simd/x86_bytes.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

#if defined(GGUF_VNNI)
template <class Levels>
constexpr int kByteBias = -least_level<Levels>();
constexpr int kByteKinds = 1;
template <class Levels>
constexpr int kByteKind = 0;
template <int kKind>
constexpr int kLevelBytes = 1;
#else
/** The most that two bytes times int8 add up to in 16 bits. */
constexpr int kMostPairs = INT16_MAX / (2 * 127);

template <class Levels>
constexpr int kLevelRange = greatest_level<Levels>() - least_level<Levels>();

/** Levels of a wide range stay signed, and have 16 bits where a tile takes them: kind 0. */
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
template <int kKind>
constexpr int kLevelBytes = kKind == 0 ? 2 : 1;
#endif
constexpr bool kSignedTiles = false;
constexpr bool kMultipliesCodesInKernels = true;
constexpr int kRowRegisters = 2;
constexpr int kByteVectors = 4;

/** Bit i is byte i: all ones, or zero. */
GGUF_INLINE __m256i spread_32(uint32_t bits) {
  const __m256i from = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                        2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), from);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}

// Codes that become bytes stay in the order of the row, in two registers.

// ---- loading codes ---------------------------------------------------------------------------------------

/** Units 0 and 1 in low, 2 and 3 in high. */
template <int Bits>
struct CodesInOrder {
  __m256i low, high;
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

GGUF_INLINE TritsInOrder load_trits(const uint8_t* p, ToBytes) {
  return {load256(p), last_trits(p + 32)};
}

GGUF_INLINE TritsInOrder times3(const TritsInOrder& t) {
  return {times3(t.low), times3(t.high)};
}

/** 3x >> 8, as three quarters of a byte less 1: their upper two bits. Averages are rounded up. */
GGUF_INLINE __m256i top_trits_of_half(__m256i x) {
  const __m256i less = _mm256_subs_epu8(x, _mm256_set1_epi8(1));
  const __m256i half = _mm256_avg_epu8(less, _mm256_setzero_si256());
  return _mm256_srli_epi16(_mm256_avg_epu8(less, half), 6);
}

GGUF_INLINE CodesInOrder<2> top_trits(const TritsInOrder& t) {
  return {top_trits_of_half(t.low), top_trits_of_half(t.high)};
}

template <class Levels>
GGUF_INLINE CodesInOrder<Levels::kBits> values(const CodesInOrder<Levels::kBits>& c) {
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
/** The low nibbles of 16 bytes, then the high ones; other bits are undefined. */
GGUF_INLINE __m256i low_and_high(const uint8_t* p) {
  const __m256i twice = _mm256_broadcastsi128_si256(load128(p));
  return _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
}
template <class Levels, int Stride>
GGUF_INLINE Bytes32 level_bytes(const LowNibblesInOrder<Stride>& v, int unit,
                                const HighNibblesInOrder<Stride>&, int) {
  return levels_of_codes<Levels>(low_and_high(v.p + Stride * unit));
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const SignedBytes& v, int unit) {
  return levels_of_codes<Levels>(load256(v.p + 16 * unit));
}

template <class Levels>
GGUF_INLINE void store_bytes(uint8_t* to, const Bytes32& a) {
  if constexpr (kLevelBytes<kByteKind<Levels>> == 1) return store256(to, a.x);
  store256(to, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(a.x)));
  store256(to + 32, _mm256_cvtepi8_epi16(_mm256_extracti128_si256(a.x, 1)));
}

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

/** Of 4 x 32 bytes: with runs of 16 a sum for each of the lower 16 in the lower half, and for each of the
 * upper 16 in the upper half; with runs of 32 two sums of each, of the first and the third in the lower half.
 */
template <int kRun>
struct DotSums {
  __m256i x;
};

#if defined(GGUF_VNNI)
template <int kKind>
GGUF_INLINE __m256i dot_32(__m256i w, const int8_t* x) {
  return GGUF_DPBUSD(_mm256_setzero_si256(), w, load256(x));
}
template <int kKind>
GGUF_INLINE __m256i dot_64(__m256i v, const int8_t* x, __m256i w, const int8_t* y) {
  return GGUF_DPBUSD(dot_32<kKind>(v, x), w, load256(y));
}
#else
GGUF_INLINE __m256i add_words(__m256i a) {
  return _mm256_madd_epi16(a, _mm256_set1_epi16(1));
}

/** Sums of two products, in 16 bits. */
template <int kKind>
GGUF_INLINE __m256i pair_sums(__m256i w, __m256i x) {
  if constexpr (kKind == 0) return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  return _mm256_maddubs_epi16(w, x);
}

/** Sums of four products. */
template <int kKind>
GGUF_INLINE __m256i dot_32(__m256i w, const int8_t* x) {
  return add_words(pair_sums<kKind>(w, load256(x)));
}

/** The same of twice as many, of which as many as fit 16 bits together are added there. */
template <int kKind>
GGUF_INLINE __m256i dot_64(__m256i v, const int8_t* x, __m256i w, const int8_t* y) {
  const __m256i a = pair_sums<kKind>(v, load256(x)), b = pair_sums<kKind>(w, load256(y));
  if constexpr (kPairs[kKind] > 1) return add_words(_mm256_add_epi16(a, b));
  return _mm256_add_epi32(add_words(a), add_words(b));
}
#endif

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const Bytes32& c, const Bytes32& d,
                              const DotColumns<kRun>& x) {
  if constexpr (kRun == 32) {
    const __m256i ab = dot_64<kKind>(_mm256_permute2x128_si256(a.x, b.x, 0x20), x.codes,
                                     _mm256_permute2x128_si256(a.x, b.x, 0x31), x.last_halves),
                  cd = dot_64<kKind>(_mm256_permute2x128_si256(c.x, d.x, 0x20), x.codes + 32,
                                     _mm256_permute2x128_si256(c.x, d.x, 0x31), x.last_halves + 32);
    return {add_pairs(ab, cd)};
  } else {
    const auto sums = [&](const Bytes32& w, int k)
                          GGUF_INLINE_LAMBDA { return dot_32<kKind>(w.x, x.codes + 32 * k); };
    return {add_fours(add_pairs(sums(a, 0), sums(b, 1)), add_pairs(sums(c, 2), sums(d, 3)))};
  }
}

/** Of 4 x 32 bytes: unit k of a, then unit k of b. */
template <class Levels, class A, class B>
GGUF_INLINE DotSums<32> dot_rows(const A& a, const B& b, const DotColumns<32>& x) {
  const auto two = [&](int first) GGUF_INLINE_LAMBDA {
    return dot_64<kByteKind<Levels>>(level_bytes<Levels>(a, first).x, x.codes + 16 * first,
                                     level_bytes<Levels>(b, first).x, x.last_halves + 16 * first);
  };
  return {add_pairs(two(0), two(2))};
}

/** Of 4 x 32 bytes: units 0 and 1 of a, those of b, then units 2 and 3 of a, those of b. */
template <class Levels, class A, class B>
GGUF_INLINE DotSums<32> dot_pairs(const A& a, const B& b, const DotColumns<32>& x) {
  const auto two = [&](int first) GGUF_INLINE_LAMBDA {
    return dot_64<kByteKind<Levels>>(level_bytes<Levels>(a, first, b, first).x, x.codes + 16 * first,
                                     level_bytes<Levels>(a, first + 1, b, first + 1).x,
                                     x.last_halves + 16 * first);
  };
  return {add_pairs(two(0), two(2))};
}

GGUF_INLINE Ints8 eight_sums(const DotSums<32>& a, const DotSums<32>& b) {
  const __m256i in_turn = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return {_mm256_permutevar8x32_epi32(add_fours(a.x, b.x), in_turn)};
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

/** Registers stay registers: products would wait in memory to be added in another order, and what all rows
 * share would be loaded for each. */
GGUF_INLINE __m256i in_register(__m256i x) {
  GGUF_KEEP_IN_REGISTER("x", x);
  return x;
}

GGUF_INLINE __m256i row_word(const uint8_t* w, int word, int k) {
  return load256(w + 32 * (kRowRegisters * word + k));
}

#if defined(GGUF_VNNI)
template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  GGUF_UNROLL
  for (int i = 0; i < kRun / 4; ++i) {
    const __m256i rows[kRowRegisters] = {row_word(w, i, 0), row_word(w, i, 1)};
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __m256i word = broadcast_int(x + 4 * (i * kVectors + v)).x;
      GGUF_UNROLL
      for (int k = 0; k < kRowRegisters; ++k) {
        sums[v][k].x = GGUF_DPBUSD(sums[v][k].x, rows[k], word);
      }
    }
  }
}
#else
/** Of one word or two: their sums need no registers of their own. */
template <int kWords, int kKind, int kVectors>
GGUF_INLINE void multiply_words(const uint8_t* w, const uint8_t* x,
                                IntLanes (&sums)[kVectors][kRowRegisters]) {
  __m256i rows[kWords][kRowRegisters];
  GGUF_UNROLL
  for (int i = 0; i < kWords; ++i) {
    GGUF_UNROLL
    for (int k = 0; k < kRowRegisters; ++k) rows[i][k] = in_register(row_word(w, i, k));
  }
  GGUF_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    __m256i words[kWords];
    GGUF_UNROLL
    for (int i = 0; i < kWords; ++i) words[i] = in_register(broadcast_int(x + 4 * (i * kVectors + v)).x);
    GGUF_UNROLL
    for (int k = 0; k < kRowRegisters; ++k) {
      __m256i sum;
      if constexpr (kLevelBytes<kKind> == 2) {
        sum = _mm256_madd_epi16(rows[0][k], words[0]);
      } else if constexpr (kWords == 1) {
        sum = add_words(_mm256_maddubs_epi16(rows[0][k], words[0]));
      } else {
        sum = add_words(_mm256_add_epi16(_mm256_maddubs_epi16(rows[0][k], words[0]),
                                         _mm256_maddubs_epi16(rows[1][k], words[1])));
      }
      sums[v][k].x = in_register(_mm256_add_epi32(sums[v][k].x, sum));
    }
  }
}

/** Of more words, whose sums of two products are added up first. */
template <int kWords, int kVectors>
GGUF_INLINE void multiply_many_words(const uint8_t* w, const uint8_t* x,
                                     IntLanes (&sums)[kVectors][kRowRegisters]) {
  __m256i pairs[kVectors][kRowRegisters];
  GGUF_UNROLL
  for (int i = 0; i < kWords; ++i) {
    const __m256i rows[kRowRegisters] = {row_word(w, i, 0), row_word(w, i, 1)};
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __m256i word = in_register(broadcast_int(x + 4 * (i * kVectors + v)).x);
      GGUF_UNROLL
      for (int k = 0; k < kRowRegisters; ++k) {
        const __m256i two = _mm256_maddubs_epi16(rows[k], word);
        pairs[v][k] = in_register(i == 0 ? two : _mm256_add_epi16(pairs[v][k], two));
      }
    }
  }
  GGUF_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    GGUF_UNROLL
    for (int k = 0; k < kRowRegisters; ++k) {
      sums[v][k].x = in_register(_mm256_add_epi32(sums[v][k].x, add_words(pairs[v][k])));
    }
  }
}

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  constexpr int kWords = kRun * kLevelBytes<kKind> / 4;
  constexpr int kTogether = kPairs[kKind] < kWords ? kPairs[kKind] : kWords;
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += kTogether) {
    const uint8_t *const rows = w + 32 * kRowRegisters * i, *const words = x + 4 * kVectors * i;
    if constexpr (kTogether <= 2) {
      multiply_words<kTogether, kKind, kVectors>(rows, words, sums);
    } else {
      multiply_many_words<kTogether, kVectors>(rows, words, sums);
    }
  }
}
#endif

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

/** Of eight rows. */
GGUF_INLINE void transpose_four(const uint8_t* rows, uint64_t stride, __m256i (&words)[4]) {
  const __m256i r0 = four_words(rows, stride, 0), r1 = four_words(rows, stride, 1),
                r2 = four_words(rows, stride, 2), r3 = four_words(rows, stride, 3);
  const __m256i a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpackhi_epi32(r0, r1),
                c = _mm256_unpacklo_epi32(r2, r3), d = _mm256_unpackhi_epi32(r2, r3);
  words[0] = _mm256_unpacklo_epi64(a, c);
  words[1] = _mm256_unpackhi_epi64(a, c);
  words[2] = _mm256_unpacklo_epi64(b, d);
  words[3] = _mm256_unpackhi_epi64(b, d);
}

template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  GGUF_UNROLL
  for (int i = 0; i < kWords; i += 4) {
    GGUF_UNROLL
    for (int k = 0; k < kRowRegisters; ++k) {
      __m256i words[4];
      transpose_four(rows + 8 * k * stride + 4 * i, stride, words);
      GGUF_UNROLL
      for (int j = 0; j < 4; ++j) store256(to + 32 * (kRowRegisters * (i + j) + k), words[j]);
    }
  }
}

/** Two words of four bytes in each of its codes. */
struct CodeTransposer {
  static constexpr int kWords = 2;
  template <int Bits>
  using Words = CodesInOrder<Bits>[kWords];

  template <int Bits>
  static GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, Words<Bits>& words) {
    __m256i of_rows[4];
    transpose_four(rows, stride, of_rows);
    words[0] = {of_rows[0], of_rows[1]};
    words[1] = {of_rows[2], of_rows[3]};
  }
  template <class Levels>
  static GGUF_INLINE void store_word(uint8_t* to, int i, __m256i codes) {
    const __m256i levels = levels_of_codes<Levels>(codes).x;
    if constexpr (kLevelBytes<kByteKind<Levels>> == 1) {
      store256(to + 32 * kRowRegisters * i, levels);
    } else {  // the first two bytes of each word, and the last two
      const auto widened = [=](int64_t first, int64_t second) GGUF_INLINE_LAMBDA {
        const __m256i tops = _mm256_setr_epi64x(first, second, first, second);
        return _mm256_srai_epi16(_mm256_shuffle_epi8(levels, tops), 8);
      };
      store256(to + 64 * kRowRegisters * i, widened(0x0505040401010000, 0x0d0d0c0c09090808));
      store256(to + 64 * kRowRegisters * i + 32 * kRowRegisters,
               widened(0x0707060603030202, 0x0f0f0e0e0b0b0a0a));
    }
  }
  template <class Levels, int Bits>
  static GGUF_INLINE void store(uint8_t* to, int i, const CodesInOrder<Bits>& codes) {
    store_word<Levels>(to, 2 * i, codes.low);
    store_word<Levels>(to, 2 * i + 1, codes.high);
  }
};

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
