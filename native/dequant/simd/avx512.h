// AVX-512 F, BW, DQ, VL, VBMI and VNNI: Intel since Ice Lake, AMD since Zen 4. Older machines lack the byte
// permutation (VBMI) that all kernels here start with: they run the AVX2 kernels.
#pragma once

#include "dequant/simd/common.h"
#include "dequant/simd/target.h"
#include "dequant/simd/x86.h"

#define GGUF_SIMD_SET

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 reports a warning for its own _mm512_undefined_epi32, which is inlined from the intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define GGUF_ISA_FEATURES "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,f16c,popcnt"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
namespace gguf {
namespace {
namespace simd {

constexpr const char* kName = "avx512";
constexpr bool kStreams = true;
constexpr bool kMultipliesInKernels = true;
constexpr int kPairRegisters = 2;

struct Floats16 {
  __m512 x;
};

constexpr int kLanes = 16;
constexpr int kTileSums = 24;  // of 32 registers
struct Lanes {
  __m512 x;
};

/**
 * Interleaved: byte v of 32-bit lane i is code 16v + i, so one shift gives a unit. Codes of up to five bits
 * are looked up by vpermps or vpermi2ps, which take an index from the low bits of each lane.
 */
template <int Bits>
struct Codes {
  __m512i x;
};

/** 64 byte positions or values, computed at compile time. */
struct Bytes64 {
  alignas(64) uint8_t byte[64];
};

GGUF_INLINE __m512i load512(const void* p) {
  return _mm512_loadu_si512(p);
}
GGUF_INLINE __m512i load512(const Bytes64& bytes) {
  return _mm512_load_si512(bytes.byte);
}

// ---- loading codes ---------------------------------------------------------------------------------------

/** The source of each byte of interleaved codes: unit k is the 16 bytes from `unit_offset * k - origin` on,
    modulo `wrap`. */
constexpr Bytes64 interleaving(int unit_offset, int origin = 0, int wrap = 256) {
  Bytes64 from{};
  for (int lane = 0; lane < 16; ++lane) {
    for (int unit = 0; unit < 4; ++unit) {
      from.byte[4 * lane + unit] = static_cast<uint8_t>((unit_offset * unit + lane - origin) % wrap);
    }
  }
  return from;
}

constexpr Bytes64 kInterleaving = interleaving(16);
constexpr Bytes64 kInterleavingTwice = interleaving(16, 0, 32);

/** From file order. */
template <int Bits>
GGUF_INLINE Codes<Bits> interleave(__m512i codes) {
  return {_mm512_permutexvar_epi8(load512(kInterleaving), codes)};
}

template <int Bits>
GGUF_INLINE Codes<Bits> load(const uint8_t* p, ToNumbers = {}) {
  return interleave<Bits>(load512(p));
}

template <int Bits>
GGUF_INLINE Codes<Bits> load_twice(const uint8_t* p, ToNumbers = {}) {
  return {_mm512_permutexvar_epi8(load512(kInterleavingTwice), _mm512_castsi256_si512(load256(p)))};
}

/** Where load_runs finds its four runs in the first and in the last 64 of the bytes that contain them. */
template <int Stride>
struct Runs {
  static constexpr int kBytes = 3 * Stride + 16;
  static constexpr Bytes64 kFromFirst = interleaving(Stride);
  static constexpr Bytes64 kFromLast = interleaving(Stride, kBytes - 64);
  static constexpr uint64_t kUseLast = 0x8888888888888888;  // the fourth run
  static_assert(2 * Stride + 16 <= 64 && kBytes >= 64, "three runs in the first 64 bytes");
};

template <int Bits, int Stride>
GGUF_INLINE Codes<Bits> load_runs(const uint8_t* p, ToNumbers = {}) {
  using R = Runs<Stride>;
  const __m512i three = _mm512_permutexvar_epi8(load512(R::kFromFirst), load512(p));
  return {
      _mm512_mask_permutexvar_epi8(three, R::kUseLast, load512(R::kFromLast), load512(p + R::kBytes - 64))};
}

template <int Bits>
GGUF_INLINE Codes<Bits> spread_bits(uint64_t bits, ToNumbers = {}) {
  return interleave<Bits>(_mm512_movm_epi8(bits));
}

/** Where the bytes of load_packed and load_nibble_runs come from. */
constexpr Bytes64 packed_bytes() {
  Bytes64 from{};
  for (int i = 0; i < 64; ++i)
    from.byte[i] = static_cast<uint8_t>(4 * (i % 4) + i / 4 / 4);  // code 16*(i%4) + i/4
  return from;
}

constexpr Bytes64 nibble_run_bytes() {
  Bytes64 from{};
  for (int i = 0; i < 64; ++i) from.byte[i] = static_cast<uint8_t>(8 * (i % 4) + i / 4 % 8);
  return from;
}

constexpr Bytes64 kPackedBytes = packed_bytes();
constexpr Bytes64 kNibbleRunBytes = nibble_run_bytes();

template <int Bits>
GGUF_INLINE Codes<Bits> load_packed(const uint8_t* p, ToNumbers = {}) {
  const __m512i shifts = _mm512_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6, 0, 2, 4, 6, 0, 2, 4, 6);
  const __m512i codes = _mm512_permutexvar_epi8(load512(kPackedBytes), _mm512_castsi128_si512(load128(p)));
  return {_mm512_srlv_epi32(codes, shifts)};
}

template <int Bits>
GGUF_INLINE Codes<Bits> load_nibble_runs(const uint8_t* p, ToNumbers = {}) {
  const __m512i shifts = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
  const __m512i codes = _mm512_permutexvar_epi8(load512(kNibbleRunBytes), _mm512_castsi256_si512(load256(p)));
  return {_mm512_srlv_epi32(codes, shifts)};
}

template <int Mask, int Bits>
GGUF_INLINE Codes<Bits> select(const Codes<Bits>& a, const Codes<Bits>& b) {
  constexpr int kFirstPicksSecondElseThird = 0xCA;
  return {_mm512_ternarylogic_epi32(_mm512_set1_epi8(static_cast<char>(Mask)), a.x, b.x,
                                    kFirstPicksSecondElseThird)};
}

GGUF_INLINE __m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/** In halves: where both have just been written, one load of 64 bytes would wait until they are in the cache.
 */
GGUF_INLINE __m512i load_halves(const void* p) {
  const auto* bytes = static_cast<const uint8_t*>(p);
  return join(load256(bytes), load256(bytes + 32));
}

/**
 * The 32 words with these numbers of a table: 64 of them are looked up at a time, and the bits of a number
 * above these six select one of the results. No gathers: they are slow on AMD's processors, and on Intel's
 * where a flaw of them had to be closed.
 */
template <int kWords>
GGUF_INLINE __m512i look_up_words(const uint16_t* table, __m512i numbers) {
  if constexpr (kWords == 64) {
    return _mm512_permutex2var_epi16(load512(table), numbers, load512(table + 32));
  } else {
    const __mmask32 in_upper = _mm512_test_epi16_mask(numbers, _mm512_set1_epi16(kWords / 2));
    return _mm512_mask_mov_epi16(look_up_words<kWords / 2>(table, numbers), in_upper,
                                 look_up_words<kWords / 2>(table + kWords / 2, numbers));
  }
}

/** Rows of a codebook of few rows: packed ones, 16 bits each, replace their numbers. */
template <const auto& kBook, int kCount>
struct PackedRows : NumberedRows<kBook, kCount> {
  GGUF_INLINE void find() {
    for (int i = 0; i < kCount; i += 32) {
      uint16_t* const rows = this->number + i;
      _mm512_store_si512(rows, look_up_words<kBook.kRows>(kBook.packed, load_halves(rows)));
    }
  }
  GGUF_INLINE __m128i eight(int first) const { return load128(this->number + first); }
  GGUF_INLINE __m256i sixteen(int first) const { return load256(this->number + first); }
};

/** Rows of a codebook of many rows, which are loaded one by one. */
template <const auto& kBook, int kCount>
struct LoadedRows : NumberedRows<kBook, kCount> {
  GGUF_INLINE __m128i eight(int first) const { return words128(four(first), four(first + 4)); }

 private:
  /** In a general register: vector units have enough to do. */
  GGUF_INLINE uint64_t four(int first) const {
    uint64_t packed = 0;
    GGUF_UNROLL
    for (int i = 3; i >= 0; --i) packed = packed << 16 | kBook.packed[this->number[first + i]];
    GGUF_KEEP_IN_REGISTER("r", packed);
    return packed;
  }
};

template <const auto& kBook, int kCount>
using BookRows =
    std::conditional_t<(kBook.kRows <= 512), PackedRows<kBook, kCount>, LoadedRows<kBook, kCount>>;

/**
 * 64 codes from packed rows of 8 or 4, interleaved. Each quadword has the four rows of the codes of its two
 * lanes, and each byte takes its code from there; the signs are bits of a quadword.
 */
template <class Levels, int kColumns>
struct RowBits {
  alignas(64) uint16_t row[32] = {};
  alignas(64) uint8_t code[64] = {}, sign[64] = {};  // positions of their lowest bits in the quadword

  constexpr RowBits() {
    constexpr int kBits = Levels::kBits - 1;
    for (int lane = 0; lane < 16; ++lane) {
      for (int unit = 0; unit < 4; ++unit) {
        const int i = 16 * unit + lane;
        row[lane / 2 * 4 + unit] = static_cast<uint16_t>(i / kColumns);
        code[4 * lane + unit] = static_cast<uint8_t>(16 * unit + kBits * (lane % kColumns));
        sign[4 * lane + unit] = static_cast<uint8_t>((i - kBits) & 63);  // to the bit above the code
      }
    }
  }
};
template <class Bits>
constexpr Bits kRowBits{};

template <class Levels, int kColumns>
GGUF_INLINE Codes<Levels::kBits> unpack_rows(__m512i packed, const uint8_t* signs) {
  using Bits = RowBits<Levels, kColumns>;
  const __m512i fours = _mm512_permutexvar_epi16(load512(kRowBits<Bits>.row), packed);
  const __m512i codes = _mm512_multishift_epi64_epi8(load512(kRowBits<Bits>.code), fours);
  const __m512i tops = _mm512_multishift_epi64_epi8(load512(kRowBits<Bits>.sign),
                                                    _mm512_set1_epi64(static_cast<int64_t>(word64(signs))));
  return select<(1 << (Levels::kBits - 1)) - 1>(Codes<Levels::kBits>{codes}, Codes<Levels::kBits>{tops});
}

template <class Levels, class Rows>
GGUF_INLINE Codes<Levels::kBits> gather8(const Rows& rows, int first, const uint8_t* signs, ToNumbers = {}) {
  return unpack_rows<Levels, 8>(_mm512_castsi128_si512(rows.eight(first)), signs);
}

template <class Levels, class Rows>
GGUF_INLINE Codes<Levels::kBits> gather16(const Rows& rows, int first, const uint8_t* signs, ToNumbers = {}) {
  return unpack_rows<Levels, 4>(_mm512_castsi256_si512(rows.sixteen(first)), signs);
}

// ---- codes -----------------------------------------------------------------------------------------------

template <int A, int B, int Bits>
GGUF_INLINE Codes<Bits> shift_halves(const Codes<Bits>& c) {
  constexpr int a = A < 0 ? -A : A, b = B < 0 ? -B : B;
  static_assert((A >= 0) == (B >= 0), "both in the same direction");
  if constexpr (a == b) return {A < 0 ? _mm512_slli_epi16(c.x, a) : _mm512_srli_epi16(c.x, a)};
  const __m512i counts = _mm512_set1_epi32(a | b << 16);
  return {A < 0 ? _mm512_sllv_epi16(c.x, counts) : _mm512_srlv_epi16(c.x, counts)};
}

template <int N, int Bits>
GGUF_INLINE Codes<Bits> shift(const Codes<Bits>& c) {
  return shift_halves<N, N>(c);
}

/** Each byte on top of a word: those of units 0 and 2, and those of units 1 and 3. */
struct Trits {
  __m512i even, odd;
};
/** The first digits, each at the bottom of its word. */
struct TopTrits {
  __m512i even, odd;
};

/** Interleaved: where each byte comes from, and what the words of units 1 and 3 are multiplied by. */
struct TritBytes {
  alignas(64) uint8_t from[64] = {};
  alignas(64) uint16_t factor[32] = {};

  constexpr TritBytes() {
    constexpr uint16_t kPowers[4] = {1, 3, 9, 27};
    for (int lane = 0; lane < 16; ++lane) {
      for (int unit = 0; unit < 3; ++unit) from[4 * lane + unit] = static_cast<uint8_t>(16 * unit + lane);
      from[4 * lane + 3] = static_cast<uint8_t>(48 + lane % 4);
      factor[2 * lane] = 1;
      factor[2 * lane + 1] = kPowers[lane / 4];
    }
  }
};
constexpr TritBytes kTritBytes{};

GGUF_INLINE Trits load_trits(const uint8_t* p, ToNumbers = {}) {
  constexpr __mmask64 kUsed = (uint64_t{1} << 52) - 1;
  const __m512i bytes = _mm512_permutexvar_epi8(load512(kTritBytes.from), _mm512_maskz_loadu_epi8(kUsed, p));
  const __m512i odd = _mm512_and_si512(bytes, _mm512_set1_epi16(static_cast<short>(0xff00)));
  return {_mm512_slli_epi16(bytes, 8), _mm512_mullo_epi16(odd, load512(kTritBytes.factor))};
}

GGUF_INLINE Trits times3(const Trits& t) {
  __m512i three = _mm512_set1_epi16(3);
  GGUF_KEEP_IN_REGISTER("v", three);  // rather than to shift and add
  return {_mm512_mullo_epi16(t.even, three), _mm512_mullo_epi16(t.odd, three)};
}

GGUF_INLINE TopTrits top_trits(const Trits& t) {
  const __m512i three = _mm512_set1_epi16(3);
  return {_mm512_mulhi_epu16(t.even, three), _mm512_mulhi_epu16(t.odd, three)};
}

// ---- floats ----------------------------------------------------------------------------------------------

GGUF_INLINE Floats16 load_f32(const void* p) {
  return {_mm512_loadu_ps(p)};
}

GGUF_INLINE Floats16 load_f16(const uint8_t* p) {
  return {_mm512_cvtph_ps(load256(p))};
}

GGUF_INLINE Floats16 load_bf16(const uint8_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16))};
}

GGUF_INLINE Floats16 int8_to_float(__m128i x) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(x))};
}

GGUF_INLINE Floats16 load_int8(const void* p) {
  return int8_to_float(load128(p));
}

GGUF_INLINE Floats16 load_int16(const void* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(load256(p)))};
}

GGUF_INLINE Floats16 join(__m256 low, __m256 high) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)};
}

GGUF_INLINE Floats16 load_int32(const void* p) {
  return {_mm512_cvtepi32_ps(load_halves(p))};
}

GGUF_INLINE Floats16 load_int64(const uint8_t* p) {
  return join(_mm512_cvtepi64_ps(load512(p)), _mm512_cvtepi64_ps(load512(p + 64)));
}

GGUF_INLINE Floats16 load_f64(const uint8_t* p) {
  return join(_mm512_cvtpd_ps(_mm512_loadu_pd(p)), _mm512_cvtpd_ps(_mm512_loadu_pd(p + 64)));
}

GGUF_INLINE Floats16 int8x16(uint64_t low, uint64_t high) {
  return int8_to_float(words128(low, high));
}

/** Six bits: four of each byte of `low`, and above them two of `high`. */
GGUF_INLINE Floats16 sixes(__m128i low, __m128i high) {
  constexpr int kFirstPicksSecondElseThird = 0xCA;
  const __m128i eight = _mm_ternarylogic_epi32(_mm_set1_epi8(15), low, high, kFirstPicksSecondElseThird);
  return int8_to_float(_mm_and_si128(eight, _mm_set1_epi8(63)));
}

GGUF_INLINE Floats16 load_sixes(const uint8_t* p) {
  const __m128i fields = _mm_shuffle_epi8(_mm_maskz_loadu_epi32(7, p),
                                          _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11));
  const __m128i low = _mm_setr_epi8(0, 8, 16, 24, 32, 40, 48, 56, 0, 8, 16, 24, 36, 44, 52, 60),
                high = _mm_setr_epi8(0, 8, 16, 24, 2, 10, 18, 26, 0, 8, 16, 24, 2, 10, 18, 26);
  return sixes(_mm_multishift_epi64_epi8(low, fields), _mm_multishift_epi64_epi8(high, fields));
}

GGUF_INLINE Floats16 join_sixes(const uint8_t* nibbles, const uint8_t* pairs) {
  const __m128i fields = words128(word32(nibbles) | static_cast<uint64_t>(word16(pairs)) << 32, 0);
  const __m128i low = _mm_set1_epi64x(0x1c1814100c080400), high = _mm_set1_epi64x(0x2a28262422201e1c);
  return sixes(_mm_multishift_epi64_epi8(low, fields), _mm_multishift_epi64_epi8(high, fields));
}

/**
 * Where halves<Stride> finds its numbers: a few at a time, in two loads of 64 bytes, which do not go
 * beyond them. One permutation puts them at their place among the 16.
 */
template <int Stride>
struct Halves {
  static constexpr int kAtATime = 7 * Stride < 128 ? 8 : 4;
  static constexpr int kBytes = kAtATime * Stride;
  static constexpr int kUsed = kBytes - Stride + 2;
  static constexpr int kSecond = kUsed > 64 ? kUsed - 64 : 0;  // where the second load begins
  alignas(64) uint16_t word[32] = {};

  constexpr Halves() {
    for (int i = 0; i < 16; ++i) {
      const int at = i % kAtATime * Stride;
      word[i] = static_cast<uint16_t>(at < 64 ? at / 2 : 32 + (at - kSecond) / 2);
    }
  }
};
template <class Halves>
constexpr Halves kHalves{};

template <int Stride>
GGUF_INLINE Floats16 halves(const uint8_t* p) {
  using H = Halves<Stride>;
  const __m512i words = load512(kHalves<H>.word);
  __m512i all = _mm512_permutex2var_epi16(load512(p), words, load512(p + H::kSecond));
  GGUF_UNROLL
  for (int i = H::kAtATime; i < 16; i += H::kAtATime, p += H::kBytes) {
    const __m512i more =
        _mm512_permutex2var_epi16(load512(p + H::kBytes), words, load512(p + H::kBytes + H::kSecond));
    all = _mm512_mask_mov_epi16(all, 0xffffu << i, more);
  }
  return {_mm512_cvtph_ps(_mm512_castsi512_si256(all))};
}

GGUF_INLINE Floats16 add(const Floats16& a, float c) {
  return {_mm512_add_ps(a.x, _mm512_set1_ps(c))};
}

GGUF_INLINE Floats16 mul(const Floats16& a, float c) {
  return {_mm512_mul_ps(a.x, _mm512_set1_ps(c))};
}

GGUF_INLINE Floats16 mul_halves(const Floats16& a, const uint8_t* p) {
  const __m512i of_each = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  return {_mm512_mul_ps(a.x, _mm512_permutexvar_ps(of_each, _mm512_castps128_ps512(half_and_minus_half(p))))};
}

GGUF_INLINE Floats16 add(const Floats16& a, const Floats16& b) {
  return {_mm512_add_ps(a.x, b.x)};
}

GGUF_INLINE Floats16 fma(const Floats16& a, const Floats16& b, const Floats16& c) {
  return {_mm512_fmadd_ps(a.x, b.x, c.x)};
}

GGUF_INLINE float sum(const Floats16& a) {
  return sum8(_mm256_add_ps(_mm512_castps512_ps256(a.x), _mm512_extractf32x8_ps(a.x, 1)));
}

GGUF_INLINE void sums(const float* p, float* y) {
  __m512 eight[8];
  GGUF_UNROLL
  for (int i = 0; i < 8; ++i) {
    const __m512 a = _mm512_loadu_ps(p + 32 * i), b = _mm512_loadu_ps(p + 32 * i + 16);
    eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  __m512 four[4];
  GGUF_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512 a = eight[2 * i], b = eight[2 * i + 1];
    four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  __m512 two[2];
  GGUF_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m512d a = _mm512_castps_pd(four[2 * i]), b = _mm512_castps_pd(four[2 * i + 1]);
    two[i] =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  // Rows 0, 4, 8, 12, 1, 5 ...
  const __m512 one =
      _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88), _mm512_shuffle_ps(two[0], two[1], 0xdd));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_ps(y, _mm512_permutexvar_ps(order, one));
}

GGUF_INLINE Lanes load_lanes(const float* p) {
  Lanes r{_mm512_loadu_ps(p)};
  GGUF_KEEP_IN_REGISTER("v", r.x);  // rather than to load it again for each use
  return r;
}

GGUF_INLINE void store_lanes(float* p, const Lanes& a) {
  _mm512_storeu_ps(p, a.x);
}

GGUF_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return {_mm512_fmadd_ps(a.x, b.x, c.x)};
}

// ---- statistics -------------------------------------------------------------------------------------------

struct Doubles {
  __m512d low, high;
};

/** In a general register: vector units have enough to do. */
struct Counts {
  uint32_t n;
};

GGUF_INLINE Doubles load_doubles(const float* p) {
  return {_mm512_cvtps_pd(_mm256_loadu_ps(p)), _mm512_cvtps_pd(_mm256_loadu_ps(p + 8))};
}

GGUF_INLINE void store_doubles(double* p, const Doubles& a) {
  _mm512_storeu_pd(p, a.low);
  _mm512_storeu_pd(p + 8, a.high);
}

GGUF_INLINE Doubles add(const Doubles& a, const Doubles& b) {
  return {_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
}

GGUF_INLINE Doubles sub(const Doubles& a, const Doubles& b) {
  return {_mm512_sub_pd(a.low, b.low), _mm512_sub_pd(a.high, b.high)};
}

GGUF_INLINE Doubles add_square(const Doubles& a, const Doubles& c) {
  return {_mm512_fmadd_pd(a.low, a.low, c.low), _mm512_fmadd_pd(a.high, a.high, c.high)};
}

GGUF_INLINE Doubles add_rounded_square(const Doubles& a, const Doubles& c) {
  return add({_mm512_mul_pd(a.low, a.low), _mm512_mul_pd(a.high, a.high)}, c);
}

GGUF_INLINE Doubles magnitude(const Doubles& a) {
  return {_mm512_abs_pd(a.low), _mm512_abs_pd(a.high)};
}

GGUF_INLINE Doubles max(const Doubles& a, const Doubles& b) {
  return {_mm512_max_pd(a.low, b.low), _mm512_max_pd(a.high, b.high)};
}

GGUF_INLINE Lanes max_signed(const Lanes& a, const Lanes& b) {
  return {_mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a.x), _mm512_castps_si512(b.x)))};
}

GGUF_INLINE Lanes max_unsigned(const Lanes& a, const Lanes& b) {
  return {_mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a.x), _mm512_castps_si512(b.x)))};
}

GGUF_INLINE Counts count_equal(const Lanes& a, const Lanes& b, const Counts& c) {
  const __mmask16 equal = _mm512_cmp_ps_mask(a.x, b.x, _CMP_EQ_OQ);
  return {c.n + static_cast<uint32_t>(_mm_popcnt_u32(_cvtmask16_u32(equal)))};
}

GGUF_INLINE uint32_t total(const Counts& c) {
  return c.n;
}

/** The bins of eight numbers, if these are in the range. */
GGUF_INLINE __m256i bins_in_range(__m256 x, const BinRange& range) {
  __m512d part = _mm512_sub_pd(_mm512_cvtps_pd(x), _mm512_set1_pd(range.low));
  part = _mm512_max_pd(_mm512_mul_pd(part, _mm512_set1_pd(range.scale)), _mm512_setzero_pd());
  return _mm512_cvttpd_epi32(_mm512_min_pd(part, _mm512_set1_pd(range.last)));
}

GGUF_INLINE void store_slots(uint32_t* slots, const float* p, const BinRange& range) {
  const __m512 x = _mm512_loadu_ps(p);
  const __m512i low = _mm512_castsi256_si512(bins_in_range(_mm256_loadu_ps(p), range));
  const __m512i bin = _mm512_inserti64x4(low, bins_in_range(_mm256_loadu_ps(p + 8), range), 1);
  const __mmask16 is_below = _mm512_cmp_ps_mask(x, _mm512_set1_ps(range.smallest), _CMP_LT_OQ);
  const __mmask16 is_above = _mm512_cmp_ps_mask(x, _mm512_set1_ps(range.greatest), _CMP_GT_OQ);
  __m512i slot = _mm512_maskz_add_epi32(_knot_mask16(is_below), bin, _mm512_set1_epi32(1));
  slot = _mm512_mask_set1_epi32(slot, is_above, static_cast<int>(range.n_slots - 1));
  _mm512_storeu_si512(slots, slot);
}

GGUF_INLINE bool guess_slots(uint32_t* slots, const float* p, const BinRange& range) {
  const __m512 x = _mm512_loadu_ps(p);
  const SlotGuess& guess = range.guess;
  __m512 part = _mm512_fmadd_ps(x, _mm512_set1_ps(guess.factor), _mm512_set1_ps(guess.term));
  part = _mm512_max_ps(_mm512_min_ps(part, _mm512_set1_ps(guess.most)), _mm512_set1_ps(guess.least));
  const __m512i fixed = _mm512_cvttps_epi32(part);
  const __mmask16 is_unsure = _mm512_cmp_ps_mask(x, _mm512_set1_ps(guess.sure), _CMP_NEQ_UQ);
  const __m512i decided = _mm512_set1_epi32(static_cast<int>(guess.decided));
  _mm512_storeu_si512(slots, _mm512_srli_epi32(fixed, guess.point));
  return _mm512_mask_testn_epi32_mask(is_unsure, fixed, decided) == 0;
}

// ---- levels ----------------------------------------------------------------------------------------------

template <class Levels>
struct Values {
  __m512i x;
  GGUF_INLINE explicit Values(const Codes<Levels::kBits>& c) : x(c.x) {}
};

template <class Levels>
GGUF_INLINE Values<Levels> values(const Codes<Levels::kBits>& c) {
  return Values<Levels>(c);
}

template <class Levels>
GGUF_INLINE TopTrits values(const TopTrits& t) {
  return t;
}

/** Looks up the 16 codes of a unit in a table of 16 numbers; the bits of a lane above the fourth are ignored.
 */
template <class Levels>
GGUF_INLINE Floats16 look_up(__m512 table, const Values<Levels>& v, int unit) {
  return {_mm512_permutexvar_ps(_mm512_srli_epi32(v.x, 8 * unit), table)};
}

template <class Levels>
GGUF_INLINE Floats16 look_up(__m512 table, const TopTrits& t, int unit) {
  const __m512i words = unit % 2 == 0 ? t.even : t.odd;
  return {_mm512_permutexvar_ps(_mm512_srli_epi32(words, unit / 2 * 16), table)};
}

template <class Levels>
GGUF_INLINE __m512 numbers(int first = 0) {
  return _mm512_load_ps(kLevelTable<Levels>.number + first);
}

/**
 * The codes of a unit as numbers, less 2^(Bits-1). They become the fraction of a binary32 number whose
 * exponent gives a code the weight 1, which is exact. There is no room for a code in the top byte of a lane.
 */
template <int Bits>
GGUF_INLINE __m512 centred_codes(__m512i x, int unit) {
  if (unit == 3) return centred_codes<Bits>(_mm512_srli_epi32(x, 8), 2);
  constexpr int kAndThenOr = 0xEA;
  const int at = 8 * unit;
  const __m512i code = _mm512_set1_epi32(((1 << Bits) - 1) << at);
  const __m512i one = _mm512_set1_epi32((127 + 23 - at) << 23);  // 2^(23 - at)
  const __m512 number = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(x, code, one, kAndThenOr));
  return _mm512_sub_ps(number, _mm512_set1_ps(static_cast<float>((1 << (23 - at)) + (1 << (Bits - 1)))));
}

/** The unscaled levels of the 16 codes of a unit, of five bits or more. */
template <class Levels>
GGUF_INLINE __m512 levels_of_unit(const Values<Levels>& v, int unit) {
  if constexpr (Levels::kBits == 5) {
    return _mm512_permutex2var_ps(numbers<Levels>(), _mm512_srli_epi32(v.x, 8 * unit), numbers<Levels>(16));
  } else {
    static_assert(Levels::value(0) == -(1 << (Levels::kBits - 1)) && Levels::kLinear, "Offset");
    return centred_codes<Levels::kBits>(v.x, unit);
  }
}

template <class Levels, bool kOneTable = (Levels::kBits <= 4)>
struct Scaled;

template <class Levels>
struct Scaled<Levels, true> {
  __m512 table;
  GGUF_INLINE explicit Scaled(float d) : table(_mm512_mul_ps(numbers<Levels>(), _mm512_set1_ps(d))) {}
  template <class V>
  GGUF_INLINE Floats16 operator()(const V& v, int unit) const {
    return look_up<Levels>(table, v, unit);
  }
};

template <class Levels>
struct Scaled<Levels, false> {
  float d;
  GGUF_INLINE explicit Scaled(float scale) : d(scale) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return {_mm512_mul_ps(levels_of_unit<Levels>(v, unit), _mm512_set1_ps(d))};
  }
};

// Affine fuses: the product is exact, so one rounding gives the same result as two.
template <class Levels, bool kOneTable = (Levels::kBits <= 4)>
struct Affine;

template <class Levels>
struct Affine<Levels, true> {
  __m512 table;
  GGUF_INLINE Affine(float d, float m)
      : table(_mm512_fmadd_ps(numbers<Levels>(), _mm512_set1_ps(d), _mm512_set1_ps(m))) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return look_up<Levels>(table, v, unit);
  }
};

template <class Levels>
struct Affine<Levels, false> {
  float d, m;
  GGUF_INLINE Affine(float scale, float offset) : d(scale), m(offset) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return {_mm512_fmadd_ps(levels_of_unit<Levels>(v, unit), _mm512_set1_ps(d), _mm512_set1_ps(m))};
  }
};

// ---- storing ---------------------------------------------------------------------------------------------

template <Store kStore>
GGUF_INLINE void store512(void* p, __m512i x) {
  if constexpr (kStore == Store::kPlain) {
    _mm512_storeu_si512(p, x);
  } else if (is_line(p)) {
    _mm512_stream_si512(static_cast<__m512i*>(p), x);
  } else {
    __m128i* part = static_cast<__m128i*>(p);
    _mm_stream_si128(part, _mm512_castsi512_si128(x));
    _mm_stream_si128(part + 1, _mm512_extracti32x4_epi32(x, 1));
    _mm_stream_si128(part + 2, _mm512_extracti32x4_epi32(x, 2));
    _mm_stream_si128(part + 3, _mm512_extracti32x4_epi32(x, 3));
  }
}

/** The upper (1) or lower (0) halves of 32 lanes. */
template <int Half>
constexpr Bytes64 words_of_lanes() {
  Bytes64 from{};
  for (int i = 0; i < 32; ++i) from.byte[2 * i] = static_cast<uint8_t>(2 * i + Half);
  return from;
}
constexpr Bytes64 kLowerWords = words_of_lanes<0>(), kUpperWords = words_of_lanes<1>();

/**
 * 32 bfloat16, rounded to nearest even, of numbers that are not NaN. 2^15 is added: the upper half is then
 * rounded up from the middle on. A lower half that is 0 now was the middle, of which the even neighbour is
 * wanted: the last bit of the upper half is cleared. As a mask, the lower half is min(lower, 1) | 0xfffe.
 */
GGUF_INLINE __m512i round_to_bfloat16(__m512 a, __m512 b) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const __m512i first = _mm512_add_epi32(_mm512_castps_si512(a), half);
  const __m512i second = _mm512_add_epi32(_mm512_castps_si512(b), half);
  const __m512i upper = _mm512_permutex2var_epi16(first, load512(kUpperWords), second);
  const __m512i lower = _mm512_permutex2var_epi16(first, load512(kLowerWords), second);
  constexpr int kUpperAndEither = 0xe0;  // upper & (the second | the third)
  return _mm512_ternarylogic_epi32(upper, _mm512_min_epu16(lower, _mm512_set1_epi16(1)),
                                   _mm512_set1_epi16(static_cast<short>(0xfffe)), kUpperAndEither);
}

/** 32 bfloat16: rounded to nearest even, NaNs quiet. */
GGUF_INLINE __m512i to_bfloat16(__m512 a, __m512 b) {
  const __m512i upper =
      _mm512_permutex2var_epi16(_mm512_castps_si512(a), load512(kUpperWords), _mm512_castps_si512(b));
  const __mmask32 is_nan =
      _mm512_kunpackw(_mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q));
  return _mm512_mask_mov_epi16(round_to_bfloat16(a, b), is_nan,
                               _mm512_or_si512(upper, _mm512_set1_epi16(0x40)));
}

/** Looking for NaNs takes as long as rounding, unless it is done for many numbers at once. */
constexpr int kConverted = 128;

GGUF_INLINE bool has_nan(const float* x) {
  __mmask16 found = 0;
  for (int i = 0; i < kConverted; i += 32) {
    found |= _mm512_cmp_ps_mask(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + 16), _CMP_UNORD_Q);
  }
  return found != 0;
}

template <Out kOut, Store kStore, bool kMayBeNan>
GGUF_INLINE void convert_known(uint16_t* y, const float* x) {
  for (int i = 0; i < kConverted; i += 32) {
    const __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + 16);
    if constexpr (kOut == Out::kFloat16) {
      store512<kStore>(y + i, join(_mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT),
                                   _mm512_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT)));
    } else {
      store512<kStore>(y + i, kMayBeNan ? to_bfloat16(a, b) : round_to_bfloat16(a, b));
    }
  }
}

template <Out kOut, Store kStore>
GGUF_INLINE void convert(uint16_t* y, const float* x) {
  if (kOut == Out::kBFloat16 && has_nan(x)) {
    convert_known<kOut, kStore, true>(y, x);
  } else {
    convert_known<kOut, kStore, false>(y, x);
  }
}

template <Store kStore>
GGUF_INLINE void store(float* y, const Floats16& a, const Floats16& b) {
  store512<kStore>(y, _mm512_castps_si512(a.x));
  store512<kStore>(y + 16, _mm512_castps_si512(b.x));
}

GGUF_INLINE void store_aligned(float* y, const Floats16& a) {
  _mm512_store_ps(y, a.x);
}

}  // namespace simd
}  // namespace
}  // namespace gguf
GGUF_TARGET_END
