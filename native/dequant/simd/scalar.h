// Plain C++: the definition of every primitive, and the set for machines without a supported vector unit.
// Every name in namespace simd here is a primitive, and is in the README of this folder.
#pragma once

#include "dequant/simd/common.h"

#define GGUF_SIMD_SET

// No shift counts to make constant; unrolling would only make the code larger.
#undef GGUF_UNROLL
#define GGUF_UNROLL

namespace gguf {
namespace {

/** Sets bit number `bit` of each code whose bit in `which` is set. */
GGUF_INLINE void set_bits(uint8_t* codes, int bit, uint64_t which) {
  for (int i = 0; i < 64; ++i) codes[i] = static_cast<uint8_t>(codes[i] | (which >> i & 1) << bit);
}

/** Sixteen numbers at `p` to binary32, to nearest even. */
template <class Number>
GGUF_INLINE void convert16(const void* p, float* x) {
  Number numbers[16];
  std::memcpy(numbers, p, sizeof numbers);
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(numbers[i]);
}

/**
 * a * b + c, rounded once. Where there is no instruction for it: the product is exact in binary64, and the
 * sum is rounded to odd there. That is, where it is not exact, its last bit becomes 1, so that the second
 * rounding, to binary32, sees on which side of it the exact sum lies.
 */
GGUF_INLINE float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  const double product = static_cast<double>(a) * b, addend = c;
  const double sum = product + addend;
  const double added = sum - product;
  const double error = (product - (sum - added)) + (addend - added);  // NaN beyond the finite numbers
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  const uint64_t inexact = static_cast<uint64_t>((error > 0) | (error < 0));
  const uint64_t away = (error > 0) == (sum > 0);  // the exact sum is further from 0
  bits += (inexact & ~bits) * (2 * away - 1);      // an even last bit: one step towards the exact sum
  double odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return static_cast<float>(odd);
#endif
}

/** c[i] = a[i] * b[i] + c[i]. A call of its own, because it is long, and there are many. */
GGUF_NOINLINE inline void fuse(const float* a, const float* b, float* c, int n) {
  for (int i = 0; i < n; ++i) c[i] = fused(a[i], b[i], c[i]);
}

namespace simd {

constexpr const char* kName = "scalar";
constexpr bool kStreams = false;
constexpr bool kMultipliesInKernels = false;
constexpr int kPairRegisters = 1;

struct Floats16 {
  float x[16];
};

constexpr int kLanes = 4;
constexpr int kTileSums = 6;
struct Lanes {
  float x[kLanes];
};

template <int Bits>
struct Codes {
  uint8_t code[64];
};

// ---- loading codes ---------------------------------------------------------------------------------------

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load(const uint8_t* p, To = {}) {
  Codes<Bits> c;
  std::memcpy(c.code, p, 64);
  return c;
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_twice(const uint8_t* p, To = {}) {
  Codes<Bits> c;
  std::memcpy(c.code, p, 32);
  std::memcpy(c.code + 32, p, 32);
  return c;
}

template <int Bits, int Stride, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_runs(const uint8_t* p, To = {}) {
  Codes<Bits> c;
  for (int unit = 0; unit < 4; ++unit) std::memcpy(c.code + 16 * unit, p + Stride * unit, 16);
  return c;
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> spread_bits(uint64_t bits, To = {}) {
  Codes<Bits> c;
  for (int i = 0; i < 64; ++i) c.code[i] = (bits >> i & 1) ? 0xff : 0;
  return c;
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_packed(const uint8_t* p, To = {}) {
  Codes<Bits> c;
  for (int i = 0; i < 64; ++i) c.code[i] = static_cast<uint8_t>(p[i / 4] >> 2 * (i % 4));
  return c;
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_nibble_runs(const uint8_t* p, To = {}) {
  Codes<Bits> c;
  for (int i = 0; i < 64; ++i) {
    const uint8_t byte = p[i / 16 * 8 + i % 8];
    c.code[i] = static_cast<uint8_t>(i % 16 < 8 ? byte : byte >> 4);
  }
  return c;
}

template <const auto& kBook, int kCount>
using BookRows = NumberedRows<kBook, kCount>;

template <class Levels, const auto& kBook, int kCount, class To = ToNumbers>
GGUF_INLINE Codes<Levels::kBits> gather8(const BookRows<kBook, kCount>& rows, int first, const uint8_t* signs,
                                         To = {}) {
  Codes<Levels::kBits> c;
  for (int i = 0; i < 8; ++i) std::memcpy(c.code + 8 * i, &kBook.row[rows.number[first + i]], 8);
  set_bits(c.code, Levels::kBits - 1, word64(signs));
  return c;
}

template <class Levels, const auto& kBook, int kCount, class To = ToNumbers>
GGUF_INLINE Codes<Levels::kBits> gather16(const BookRows<kBook, kCount>& rows, int first,
                                          const uint8_t* signs, To = {}) {
  Codes<Levels::kBits> c;
  for (int i = 0; i < 16; ++i) std::memcpy(c.code + 4 * i, &kBook.row[rows.number[first + i]], 4);
  set_bits(c.code, Levels::kBits - 1, word64(signs));
  return c;
}

template <int Bits, int Step, int PerWord>
GGUF_INLINE void join_rows(uint16_t* rows, const uint8_t* low, const uint8_t* high) {
  constexpr int kWordBytes = RowFields<Bits, Step, PerWord>::kWordBytes;
  for (int i = 0; i < 16; ++i) {
    const uint8_t* p = high + i / PerWord * kWordBytes;
    const int word = kWordBytes == 1 ? *p : word16(p);
    rows[i] = static_cast<uint16_t>(low[i] | (word >> Step * (i % PerWord) & ((1 << Bits) - 1)) << 8);
  }
}

// ---- codes -----------------------------------------------------------------------------------------------

template <int A, int B, int Bits>
GGUF_INLINE Codes<Bits> shift_halves(const Codes<Bits>& c) {
  constexpr int kRight[2] = {A > 0 ? A : 0, B > 0 ? B : 0}, kLeft[2] = {A < 0 ? -A : 0, B < 0 ? -B : 0};
  Codes<Bits> r;
  for (int i = 0; i < 64; ++i) {
    const int right = i < 32 ? kRight[0] : kRight[1], left = i < 32 ? kLeft[0] : kLeft[1];
    r.code[i] = static_cast<uint8_t>(c.code[i] >> right << left);
  }
  return r;
}

template <int N, int Bits>
GGUF_INLINE Codes<Bits> shift(const Codes<Bits>& c) {
  return shift_halves<N, N>(c);
}

template <int Mask, int Bits>
GGUF_INLINE Codes<Bits> select(const Codes<Bits>& a, const Codes<Bits>& b) {
  Codes<Bits> r;
  for (int i = 0; i < 64; ++i) r.code[i] = static_cast<uint8_t>((a.code[i] & Mask) | (b.code[i] & ~Mask));
  return r;
}

struct Trits {
  uint8_t byte[64];
};

template <class To = ToNumbers>
GGUF_INLINE Trits load_trits(const uint8_t* p, To = {}) {
  Trits t;
  std::memcpy(t.byte, p, 52);
  for (int i = 52; i < 64; ++i) t.byte[i] = static_cast<uint8_t>(3 * t.byte[i - 4]);
  return t;
}

GGUF_INLINE Trits times3(Trits t) {
  for (uint8_t& byte : t.byte) byte = static_cast<uint8_t>(3 * byte);
  return t;
}

GGUF_INLINE Codes<2> top_trits(const Trits& t) {
  Codes<2> c;
  for (int i = 0; i < 64; ++i) c.code[i] = static_cast<uint8_t>(3 * t.byte[i] >> 8);
  return c;
}

// ---- floats ----------------------------------------------------------------------------------------------

GGUF_INLINE float half(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return half_to_float(bits);
}

GGUF_INLINE Floats16 load_f32(const void* p) {
  Floats16 r;
  std::memcpy(r.x, p, sizeof r.x);
  return r;
}

GGUF_INLINE Floats16 load_f16(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 16; ++i) r.x[i] = half(p + 2 * i);
  return r;
}

GGUF_INLINE Floats16 load_bf16(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 16; ++i) {
    uint16_t bits;
    std::memcpy(&bits, p + 2 * i, sizeof bits);
    r.x[i] = bfloat16_to_float(bits);
  }
  return r;
}

GGUF_INLINE Floats16 load_int8(const void* p) {
  Floats16 r;
  convert16<int8_t>(p, r.x);
  return r;
}

GGUF_INLINE Floats16 load_int16(const void* p) {
  Floats16 r;
  convert16<int16_t>(p, r.x);
  return r;
}

GGUF_INLINE Floats16 load_int32(const void* p) {
  Floats16 r;
  convert16<int32_t>(p, r.x);
  return r;
}

GGUF_INLINE Floats16 load_int64(const uint8_t* p) {
  Floats16 r;
  convert16<int64_t>(p, r.x);
  return r;
}

GGUF_INLINE Floats16 load_f64(const uint8_t* p) {
  Floats16 r;
  convert16<double>(p, r.x);
  return r;
}

GGUF_INLINE Floats16 int8x16(uint64_t low, uint64_t high) {
  const uint64_t words[2] = {low, high};
  return load_int8(words);
}

GGUF_INLINE Floats16 load_sixes(const uint8_t* p) {
  const Bytes16 bytes = split_sixes(p);
  return int8x16(bytes.low, bytes.high);
}

GGUF_INLINE Floats16 join_sixes(const uint8_t* nibbles, const uint8_t* pairs) {
  return int8x16(joined_sixes(nibbles, pairs), 0);
}

template <int Stride>
GGUF_INLINE Floats16 halves(const uint8_t* p) {
  Floats16 r;
  for (int i = 0; i < 16; ++i) r.x[i] = half(p + Stride * i);
  return r;
}

GGUF_INLINE Floats16 add(Floats16 a, float c) {
  for (float& x : a.x) x += c;
  return a;
}

GGUF_INLINE Floats16 mul(Floats16 a, float c) {
  for (float& x : a.x) x *= c;
  return a;
}

GGUF_INLINE Floats16 mul_halves(Floats16 a, const uint8_t* p) {
  const float low = half(p), high = -half(p + 2);
  for (int i = 0; i < 16; ++i) a.x[i] *= i < 8 ? low : high;
  return a;
}

GGUF_INLINE Floats16 add(Floats16 a, const Floats16& b) {
  for (int i = 0; i < 16; ++i) a.x[i] += b.x[i];
  return a;
}

GGUF_INLINE Floats16 fma(const Floats16& a, const Floats16& b, Floats16 c) {
  fuse(a.x, b.x, c.x, 16);
  return c;
}

GGUF_INLINE float sum(Floats16 a) {
  for (int h = 8; h >= 1; h /= 2) {
    for (int i = 0; i < h; ++i) a.x[i] += a.x[i + h];
  }
  return a.x[0];
}

GGUF_INLINE void sums(const float* p, float* y) {
  for (int i = 0; i < 16; ++i) y[i] = sum(load_f32(p + 16 * i));
}

GGUF_INLINE Lanes load_lanes(const float* p) {
  Lanes r;
  std::memcpy(r.x, p, sizeof r.x);
  return r;
}

GGUF_INLINE void store_lanes(float* p, const Lanes& a) {
  std::memcpy(p, a.x, sizeof a.x);
}

GGUF_INLINE Lanes fma(const Lanes& a, const Lanes& b, Lanes c) {
  fuse(a.x, b.x, c.x, kLanes);
  return c;
}

// ---- statistics -------------------------------------------------------------------------------------------

struct Doubles {
  double x[kLanes];
};

struct Counts {
  uint32_t x[kLanes];
};

GGUF_INLINE Doubles load_doubles(const float* p) {
  Doubles r;
  for (int i = 0; i < kLanes; ++i) r.x[i] = static_cast<double>(p[i]);
  return r;
}

GGUF_INLINE void store_doubles(double* p, const Doubles& a) {
  std::memcpy(p, a.x, sizeof a.x);
}

GGUF_INLINE Doubles add(Doubles a, const Doubles& b) {
  for (int i = 0; i < kLanes; ++i) a.x[i] += b.x[i];
  return a;
}

GGUF_INLINE Doubles sub(Doubles a, const Doubles& b) {
  for (int i = 0; i < kLanes; ++i) a.x[i] -= b.x[i];
  return a;
}

GGUF_INLINE Doubles add_square(const Doubles& a, Doubles c) {
  for (int i = 0; i < kLanes; ++i) c.x[i] += a.x[i] * a.x[i];
  return c;
}

GGUF_INLINE Doubles add_rounded_square(const Doubles& a, const Doubles& c) {
  return add_square(a, c);
}

GGUF_INLINE Doubles magnitude(Doubles a) {
  for (double& x : a.x) x = std::fabs(x);
  return a;
}

GGUF_INLINE Doubles max(Doubles a, const Doubles& b) {
  for (int i = 0; i < kLanes; ++i) a.x[i] = a.x[i] > b.x[i] ? a.x[i] : b.x[i];
  return a;
}

GGUF_INLINE Lanes max_signed(const Lanes& a, Lanes b) {
  for (int i = 0; i < kLanes; ++i) {
    if (static_cast<int32_t>(bits_of_float(a.x[i])) > static_cast<int32_t>(bits_of_float(b.x[i])))
      b.x[i] = a.x[i];
  }
  return b;
}

GGUF_INLINE Lanes max_unsigned(const Lanes& a, Lanes b) {
  for (int i = 0; i < kLanes; ++i) {
    if (bits_of_float(a.x[i]) > bits_of_float(b.x[i])) b.x[i] = a.x[i];
  }
  return b;
}

GGUF_INLINE Counts count_equal(const Lanes& a, const Lanes& b, Counts c) {
  for (int i = 0; i < kLanes; ++i) c.x[i] += a.x[i] == b.x[i];
  return c;
}

GGUF_INLINE uint32_t total(const Counts& c) {
  uint32_t n = 0;
  for (const uint32_t count : c.x) n += count;
  return n;
}

GGUF_INLINE void store_slots(uint32_t* slots, const float* p, const BinRange& range) {
  for (int i = 0; i < kLanes; ++i) slots[i] = range.slot_of(p[i]);
}

GGUF_INLINE bool guess_slots(uint32_t* slots, const float* p, const BinRange& range) {
  store_slots(slots, p, range);
  return true;
}

// ---- levels ----------------------------------------------------------------------------------------------

template <class Levels>
struct Values {
  int8_t level[64];
  GGUF_INLINE explicit Values(const Codes<Levels::kBits>& c) {
    constexpr int kMask = (1 << Levels::kBits) - 1;
    for (int i = 0; i < 64; ++i) level[i] = kLevelTable<Levels>.level[c.code[i] & kMask];
  }
};

template <class Levels>
GGUF_INLINE Values<Levels> values(const Codes<Levels::kBits>& c) {
  return Values<Levels>(c);
}

template <class Levels>
struct Scaled {
  float d;
  GGUF_INLINE explicit Scaled(float scale) : d(scale) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return mul(load_int8(v.level + 16 * unit), d);
  }
};

template <class Levels>
struct Affine {
  float d, m;
  GGUF_INLINE Affine(float scale, float offset) : d(scale), m(offset) {}
  GGUF_INLINE Floats16 operator()(const Values<Levels>& v, int unit) const {
    return add(mul(load_int8(v.level + 16 * unit), d), m);
  }
};

// ---- storing ---------------------------------------------------------------------------------------------

constexpr int kConverted = 32;

template <Out kOut, Store kStore>
GGUF_INLINE void convert(uint16_t* y, const float* x) {
  for (int i = 0; i < kConverted; ++i) {
    y[i] = kOut == Out::kFloat16 ? float_to_half(x[i]) : float_to_bfloat16(x[i]);
  }
}

template <Store kStore>
GGUF_INLINE void store(float* y, const Floats16& a, const Floats16& b) {
  std::memcpy(y, a.x, sizeof a.x);
  std::memcpy(y + 16, b.x, sizeof b.x);
}

GGUF_INLINE void store_aligned(float* y, const Floats16& a) {
  std::memcpy(y, a.x, sizeof a.x);
}

GGUF_INLINE void store_fence() {}

}  // namespace simd
}  // namespace
}  // namespace gguf
