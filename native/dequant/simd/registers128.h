// The common part of the sets with registers of 128 bits, NEON and WebAssembly: primitives that follow from
// what a set does with one register. Included in the middle of its header, after these:
//
//   Register, IntRegister, Lanes         16 bytes, four integers, four numbers
//   load_16(p)               bytes as they are
//   select_bits(mask, a, b)  in each byte, bits of mask from a, the others from b
//   nibble_run(p)            the low nibbles of eight bytes, then their high nibbles
//   unpack_unit<k>(bytes)    16 codes of two bits: code i is bits 2*(i%4) and up of byte 4k + i/4
//   spread_source(bits), spread_unit<k>(source)      16 codes: all ones if bit 16k + i is set
//   row_pair(book, rows), four_rows(book, rows)      two rows of eight bytes, four of four bytes
//   shift_unit<N>(x)         every code right by N bits, or left if N is negative
//   top_trits_of_unit(x)     the first digit in base 3 of every byte
//   all_lanes(c)             one number in all Lanes; and the primitives of Lanes
//   half(p)                  the primitive
#pragma once

namespace gguf {
namespace {
namespace simd {

struct Floats16 {
  decltype(Lanes::x) x[4];
};

/** One unit per register, in order. */
template <int Bits>
struct Codes {
  Register a, b, c, d;
};

// ---- loading codes ---------------------------------------------------------------------------------------

template <int Bits, int Stride, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_runs(const uint8_t* p, To = {}) {
  return {load_16(p), load_16(p + Stride), load_16(p + 2 * Stride), load_16(p + 3 * Stride)};
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load(const uint8_t* p, To = {}) {
  return load_runs<Bits, 16>(p);
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_twice(const uint8_t* p, To = {}) {
  const Register first = load_16(p), second = load_16(p + 16);
  return {first, second, first, second};
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> spread_bits(uint64_t bits, To = {}) {
  const auto source = spread_source(bits);
  return {spread_unit<0>(source), spread_unit<1>(source), spread_unit<2>(source), spread_unit<3>(source)};
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_packed(const uint8_t* p, To = {}) {
  const Register bytes = load_16(p);
  return {unpack_unit<0>(bytes), unpack_unit<1>(bytes), unpack_unit<2>(bytes), unpack_unit<3>(bytes)};
}

template <int Bits, class To = ToNumbers>
GGUF_INLINE Codes<Bits> load_nibble_runs(const uint8_t* p, To = {}) {
  return {nibble_run(p), nibble_run(p + 8), nibble_run(p + 16), nibble_run(p + 24)};
}

template <int Mask, int Bits>
GGUF_INLINE Codes<Bits> select(const Codes<Bits>& a, const Codes<Bits>& b) {
  return {select_bits(Mask, a.a, b.a), select_bits(Mask, a.b, b.b), select_bits(Mask, a.c, b.c),
          select_bits(Mask, a.d, b.d)};
}

/** The top bit of each code is its sign bit. */
template <int Bits>
GGUF_INLINE Codes<Bits> with_signs(const Codes<Bits>& c, const uint8_t* signs) {
  return select<1 << (Bits - 1)>(spread_bits<Bits>(word64(signs)), c);
}

template <const auto& kBook, int kCount>
using BookRows = NumberedRows<kBook, kCount>;

template <class Levels, const auto& kBook, int kCount, class To = ToNumbers>
GGUF_INLINE Codes<Levels::kBits> gather8(const BookRows<kBook, kCount>& rows, int first, const uint8_t* signs,
                                         To = {}) {
  const uint16_t* const number = rows.number + first;
  const Codes<Levels::kBits> codes = {row_pair(kBook.row, number), row_pair(kBook.row, number + 2),
                                      row_pair(kBook.row, number + 4), row_pair(kBook.row, number + 6)};
  return with_signs(codes, signs);
}

template <class Levels, const auto& kBook, int kCount, class To = ToNumbers>
GGUF_INLINE Codes<Levels::kBits> gather16(const BookRows<kBook, kCount>& rows, int first,
                                          const uint8_t* signs, To = {}) {
  const uint16_t* const number = rows.number + first;
  const Codes<Levels::kBits> codes = {four_rows(kBook.row, number), four_rows(kBook.row, number + 4),
                                      four_rows(kBook.row, number + 8), four_rows(kBook.row, number + 12)};
  return with_signs(codes, signs);
}

// ---- codes -----------------------------------------------------------------------------------------------

template <int A, int B, int Bits>
GGUF_INLINE Codes<Bits> shift_halves(const Codes<Bits>& c) {
  return {shift_unit<A>(c.a), shift_unit<A>(c.b), shift_unit<B>(c.c), shift_unit<B>(c.d)};
}

template <int N, int Bits>
GGUF_INLINE Codes<Bits> shift(const Codes<Bits>& c) {
  return shift_halves<N, N>(c);
}

struct Trits {
  Register a, b, c, d;
};

GGUF_INLINE Codes<2> top_trits(const Trits& x) {
  return {top_trits_of_unit(x.a), top_trits_of_unit(x.b), top_trits_of_unit(x.c), top_trits_of_unit(x.d)};
}

// ---- floats ----------------------------------------------------------------------------------------------

GGUF_INLINE Floats16 load_f32(const void* p) {
  const float* x = static_cast<const float*>(p);
  return {{load_lanes(x).x, load_lanes(x + 4).x, load_lanes(x + 8).x, load_lanes(x + 12).x}};
}

/** Conversion through binary64 would round twice: numbers are converted one by one, each rounded once. */
GGUF_INLINE Floats16 load_int64(const uint8_t* p) {
  float x[16];
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(static_cast<int64_t>(word64(p + 8 * i)));
  return load_f32(x);
}

GGUF_INLINE Floats16 add(const Floats16& a, const Floats16& b) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = add(Lanes{a.x[i]}, Lanes{b.x[i]}).x;
  return r;
}

GGUF_INLINE Floats16 add(const Floats16& a, float c) {
  const auto x = all_lanes(c).x;
  return add(a, Floats16{{x, x, x, x}});
}

/** The first eight times c, the others times d. */
GGUF_INLINE Floats16 mul(const Floats16& a, const Lanes& c, const Lanes& d) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = mul(Lanes{a.x[i]}, i < 2 ? c : d).x;
  return r;
}

GGUF_INLINE Floats16 mul(const Floats16& a, float c) {
  return mul(a, all_lanes(c), all_lanes(c));
}

GGUF_INLINE Floats16 mul_halves(const Floats16& a, const uint8_t* p) {
  return mul(a, all_lanes(half(p)), all_lanes(-half(p + 2)));
}

GGUF_INLINE Floats16 fma(const Floats16& a, const Floats16& b, const Floats16& c) {
  Floats16 r;
  for (int i = 0; i < 4; ++i) r.x[i] = fma(Lanes{a.x[i]}, Lanes{b.x[i]}, Lanes{c.x[i]}).x;
  return r;
}

// ---- levels as bytes -------------------------------------------------------------------------------------

/** A sum of each of 4 x 32 bytes; with runs of 16 those of the upper halves are apart. */
template <int kRun>
struct DotSums;
template <>
struct DotSums<32> {
  IntRegister x;
};
template <>
struct DotSums<16> {
  IntRegister lower, upper;
};

struct Ints8 {
  IntRegister a, b;
};

GGUF_INLINE Ints8 eight_sums(const DotSums<32>& a, const DotSums<32>& b) {
  return {a.x, b.x};
}

struct Floats8 {
  decltype(Lanes::x) a, b;
};

GGUF_INLINE Floats8 load_8(const float* p) {
  return {load_lanes(p).x, load_lanes(p + 4).x};
}

GGUF_INLINE void store_8(float* p, const Floats8& v) {
  store_lanes(p, {v.a});
  store_lanes(p + 4, {v.b});
}

GGUF_INLINE Floats8 mul(const Floats8& v, const Floats8& w) {
  return {mul(Lanes{v.a}, Lanes{w.a}).x, mul(Lanes{v.b}, Lanes{w.b}).x};
}

GGUF_INLINE Floats8 add(const Floats8& v, const Floats8& w) {
  return {add(Lanes{v.a}, Lanes{w.a}).x, add(Lanes{v.b}, Lanes{w.b}).x};
}

// ---- statistics, storing ----------------------------------------------------------------------------------

GGUF_INLINE void store_slots(uint32_t* slots, const float* p, const BinRange& range);

GGUF_INLINE bool guess_slots(uint32_t* slots, const float* p, const BinRange& range) {
  store_slots(slots, p, range);
  return true;
}

GGUF_INLINE void store_aligned(float* y, const Floats16& a) {
  for (int i = 0; i < 4; ++i) store_lanes(y + 4 * i, {a.x[i]});
}

template <Store kStore>
GGUF_INLINE void store(float* y, const Floats16& a, const Floats16& b) {
  store_aligned(y, a);
  store_aligned(y + 16, b);
}

GGUF_INLINE void store_fence() {}

}  // namespace simd
}  // namespace
}  // namespace gguf
