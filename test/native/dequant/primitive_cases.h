// Every primitive of simd/ on its own, with the template arguments that kernels use. Included once by each
// primitives_*.cc, after an instruction set; see primitives.h.
//
// Codes can only be seen as numbers: `put_codes` scales them by 1.
#pragma once

#include "test/native/dequant/primitive_byte_cases.h"

namespace gguf {
namespace {
namespace cases {

GGUF_INLINE void put(const simd::Floats16& x, Output& out, int unit = 0) {
  simd::store_aligned(reinterpret_cast<float*>(out.bytes) + 16 * unit, x);
}

template <class Values, class Numbers>
GGUF_INLINE void put_units(const Values& v, const Numbers& number, Output& out) {
  put(number(v, 0), out, 0);
  put(number(v, 1), out, 1);
  put(number(v, 2), out, 2);
  put(number(v, 3), out, 3);
}

/** 64 codes of `Bits` bits, less the middle one. */
template <int Bits, class Codes>
GGUF_INLINE void put_codes(const Codes& codes, Output& out) {
  put_units(simd::values<Offset<Bits>>(codes), simd::Scaled<Offset<Bits>>(1), out);
}

// ---- loading codes

/** Defines a case that calls the primitive of its name with the bytes. */
#define LOAD_CODES(name)                              \
  template <int Bits>                                 \
  void name(const Input& in, Output& out) {           \
    put_codes<Bits>(simd::name<Bits>(in.bytes), out); \
  }
LOAD_CODES(load)
LOAD_CODES(load_twice)
LOAD_CODES(load_packed)
LOAD_CODES(load_nibble_runs)
#undef LOAD_CODES

template <int Bits, int Stride>
void load_runs(const Input& in, Output& out) {
  put_codes<Bits>(simd::load_runs<Bits, Stride>(in.bytes), out);
}

template <int Bits>
void spread_bits(const Input& in, Output& out) {
  put_codes<Bits>(simd::spread_bits<Bits>(word64(in.bytes)), out);
}

template <class Levels, const auto& kBook, int kRows>
void gather8(const Input& in, Output& out) {
  const auto rows = some_rows<kBook, kRows, 32>(in.bytes);
  put_units(simd::values<Levels>(simd::gather8<Levels>(rows, 8 * (in.bytes[72] & 3), in.bytes + 64)),
            simd::Scaled<Levels>(in.a), out);
}

/** With top bits that a row has in all codes or in none. */
template <class Levels, const auto& kBook, int kRows>
void gather8_uniform(const Input& in, Output& out) {
  Input uniform = in;
  for (int i = 64; i < 72; ++i) uniform.bytes[i] = in.bytes[i] & 1 ? 0xff : 0;
  gather8<Levels, kBook, kRows>(uniform, out);
}

template <class Levels, const auto& kBook, int kRows>
void gather16(const Input& in, Output& out) {
  const auto rows = some_rows<kBook, kRows, 64>(in.bytes);
  put_units(simd::values<Levels>(simd::gather16<Levels>(rows, 16 * (in.bytes[136] & 3), in.bytes + 128)),
            simd::Scaled<Levels>(in.a), out);
}

template <int Bits, int Step, int PerWord>
void join_rows(const Input& in, Output& out) {
  uint16_t rows[16];
  simd::join_rows<Bits, Step, PerWord>(rows, in.bytes, in.bytes + 16);
  std::memcpy(out.bytes, rows, sizeof rows);
}

// ---- codes

/** The bits of a byte that a shift takes from that byte. The others hold anything. */
constexpr int kept(int n) {
  return n >= 0 ? 0xff >> n : 0xff << -n & 0xff;
}

/** 64 codes of which only the bits of Mask are compared. */
template <int Bits, int Mask, class Codes>
GGUF_INLINE void put_kept(const Codes& codes, const Input& in, Output& out) {
  constexpr int kAll = (1 << Bits) - 1;
  if constexpr ((Mask & kAll) == kAll) {
    put_codes<Bits>(codes, out);
  } else {
    put_codes<Bits>(simd::select<Mask>(codes, simd::load<Bits>(in.bytes + 64)), out);
  }
}

template <int Bits, int N>
void shift(const Input& in, Output& out) {
  put_kept<Bits, kept(N)>(simd::shift<N>(simd::load<Bits>(in.bytes)), in, out);
}

template <int Bits, int Stride>
void shift_runs(const Input& in, Output& out) {
  put_kept<Bits, kept(4)>(simd::shift<4>(simd::load_runs<Bits, Stride>(in.bytes)), in, out);
}

template <int Bits, int A, int B>
void shift_halves(const Input& in, Output& out) {
  put_kept<Bits, kept(A) & kept(B)>(simd::shift_halves<A, B>(simd::load<Bits>(in.bytes)), in, out);
}

template <int Bits, int Mask>
void select(const Input& in, Output& out) {
  put_codes<Bits>(simd::select<Mask>(simd::load<Bits>(in.bytes), simd::load<Bits>(in.bytes + 64)), out);
}

/** The digit after this many others. */
template <int Digit>
void trits(const Input& in, Output& out) {
  simd::Trits t = simd::load_trits(in.bytes);
  for (int i = 0; i < Digit; ++i) t = simd::times3(t);
  put_units(simd::values<Ternary>(simd::top_trits(t)), simd::Scaled<Ternary>(in.a), out);
}

// ---- levels

template <class Levels, class Number = simd::Scaled<Levels>, class Codes, class... Factors>
GGUF_INLINE void put_levels_of(const Codes& codes, Output& out, Factors... factors) {
  put_units(simd::values<Levels>(codes), Number(factors...), out);
}

/** Levels of up to three bits, and levels that are not linear: any scale. */
template <class Levels>
void scaled(const Input& in, Output& out) {
  put_levels_of<Levels>(simd::load<Levels::kBits>(in.bytes), out, in.a);
}

template <class Levels>
void scaled_bits(const Input& in, Output& out) {
  put_levels_of<Levels>(simd::spread_bits<Levels::kBits>(word64(in.bytes)), out, in.a);
}

/** Linear levels of four bits or more. */
template <class Levels>
void scaled_by_half(const Input& in, Output& out) {
  put_levels_of<Levels>(simd::load<Levels::kBits>(in.bytes), out, in.scale);
}

/** As Values themselves, which the sets make of Codes: shifts of runs are none, with AVX2. */
template <class Levels>
void scaled_values(const Input& in, Output& out) {
  const simd::Values<Levels> v(simd::load_nibble_runs<Levels::kBits>(in.bytes));
  put_units(v, simd::Scaled<Levels>(in.scale), out);
}

template <class Levels>
void scaled_high(const Input& in, Output& out) {
  put_levels_of<Levels>(simd::shift<4>(simd::load<Levels::kBits>(in.bytes)), out, in.scale);
}

template <class Levels>
void affine(const Input& in, Output& out) {
  put_levels_of<Levels, simd::Affine<Levels>>(simd::load<Levels::kBits>(in.bytes), out, in.scale, in.b);
}

template <class Levels>
void affine_high(const Input& in, Output& out) {
  const auto codes = simd::shift<4>(simd::load<Levels::kBits>(in.bytes));
  put_levels_of<Levels, simd::Affine<Levels>>(codes, out, in.scale, in.b);
}

// ---- floats

#define LOAD_NUMBERS(name)                  \
  void name(const Input& in, Output& out) { \
    put(simd::name(in.bytes), out);         \
  }
LOAD_NUMBERS(load_f32)
LOAD_NUMBERS(load_f16)
LOAD_NUMBERS(load_bf16)
LOAD_NUMBERS(load_int8)
LOAD_NUMBERS(load_int16)
LOAD_NUMBERS(load_int32)
LOAD_NUMBERS(load_int64)
LOAD_NUMBERS(load_f64)
LOAD_NUMBERS(load_sixes)
#undef LOAD_NUMBERS
void int8x16(const Input& in, Output& out) {
  put(simd::int8x16(word64(in.bytes), word64(in.bytes + 8)), out);
}

/** Eight of them: the others are undefined. */
void join_sixes(const Input& in, Output& out) {
  put(simd::join_sixes(in.bytes, in.bytes + 4), out);
  std::memset(out.bytes + 8 * sizeof(float), 0, 8 * sizeof(float));
}

void half(const Input& in, Output& out) {
  const float x = simd::half(in.bytes);
  std::memcpy(out.bytes, &x, sizeof x);
}

template <int Stride>
void halves(const Input& in, Output& out) {
  put(simd::halves<Stride>(in.bytes), out);
}

void add(const Input& in, Output& out) {
  put(simd::add(simd::load_f32(in.bytes), in.a), out);
}
void mul(const Input& in, Output& out) {
  put(simd::mul(simd::load_f32(in.bytes), in.a), out);
}
void mul_halves(const Input& in, Output& out) {
  put(simd::mul_halves(simd::load_f32(in.bytes), in.bytes + 64), out);
}

void add_numbers(const Input& in, Output& out) {
  put(simd::add(simd::load_f32(in.bytes), simd::load_f32(in.bytes + 64)), out);
}

void fma(const Input& in, Output& out) {
  put(simd::fma(simd::load_f32(in.bytes), simd::load_f32(in.bytes + 64), simd::load_f32(in.bytes + 128)),
      out);
}

/** What is left when the product of binary16 and bfloat16 numbers, rounded to fewer bits, is taken away
 * again. */
void fma_of_close_numbers(const Input& in, Output& out) {
  float a[16], b[16], c[16];
  for (int i = 0; i < 16; ++i) {
    a[i] = half_to_float(word16(in.bytes + 2 * i));
    b[i] = float_of_bits((word32(in.bytes + 32 + 4 * i) & 0x80ffffff) | 0x3b000000);
    c[i] = float_of_bits(bits_of_float(-(a[i] * b[i])) & (i % 2 ? 0xffffffff : 0xfffff800));
  }
  put(simd::fma(simd::load_f32(a), simd::load_f32(b), simd::load_f32(c)), out);
}

void sum(const Input& in, Output& out) {
  const float x = simd::sum(simd::load_f32(in.bytes));
  std::memcpy(out.bytes, &x, sizeof x);
}

void sums(const Input& in, Output& out) {
  float numbers[256];
  for (int i = 0; i < 16; ++i) std::memcpy(numbers + 16 * i, in.bytes + 38 * i, 64);
  float y[16];
  simd::sums(numbers, y);
  std::memcpy(out.bytes, y, sizeof y);
}

/** All lanes of sixteen numbers, however many registers they are. */
void lanes(const Input& in, Output& out) {
  const auto* numbers = reinterpret_cast<const float*>(in.bytes);
  for (int i = 0; i < 16; i += simd::kLanes) {
    const simd::Lanes a = simd::load_lanes(numbers + i), b = simd::load_lanes(numbers + 16 + i);
    simd::store_lanes(reinterpret_cast<float*>(out.bytes) + i,
                      simd::fma(a, b, simd::load_lanes(numbers + 32 + i)));
  }
}

// ---- statistics: of sixteen numbers, however many registers they are

/** Calls `use(numbers, others, first)` for each register, and stores the Doubles that it gives. */
template <class Use>
GGUF_INLINE void put_doubles(const Input& in, Output& out, Use use) {
  const auto* numbers = reinterpret_cast<const float*>(in.bytes);
  for (int i = 0; i < 16; i += simd::kLanes) {
    simd::store_doubles(reinterpret_cast<double*>(out.bytes) + i,
                        use(simd::load_doubles(numbers + i), simd::load_doubles(numbers + 16 + i)));
  }
}

#define PUT_DOUBLES(name, result)                                                                \
  void name(const Input& in, Output& out) {                                                      \
    put_doubles(in, out, [](const simd::Doubles& a, const simd::Doubles& b) { return result; }); \
  }
PUT_DOUBLES(double_sums, simd::add(a, b))
PUT_DOUBLES(double_differences, simd::magnitude(simd::sub(a, b)))
PUT_DOUBLES(double_maxima, simd::max(a, b))
PUT_DOUBLES(squares, simd::add_square(a, b))
PUT_DOUBLES(rounded_squares, simd::add_rounded_square(simd::sub(a, b), b))
#undef PUT_DOUBLES

void lane_maxima(const Input& in, Output& out) {
  const auto* numbers = reinterpret_cast<const float*>(in.bytes);
  auto* const results = reinterpret_cast<float*>(out.bytes);
  for (int i = 0; i < 16; i += simd::kLanes) {
    const simd::Lanes a = simd::load_lanes(numbers + i), b = simd::load_lanes(numbers + 16 + i);
    simd::store_lanes(results + i, simd::max_signed(a, b));
    simd::store_lanes(results + 16 + i, simd::max_unsigned(a, b));
  }
}

void equal_counts(const Input& in, Output& out) {
  const auto* numbers = reinterpret_cast<const float*>(in.bytes);
  simd::Counts counts{};
  for (int i = 0; i < 16; i += simd::kLanes) {
    const simd::Lanes a = simd::load_lanes(numbers + i), b = simd::load_lanes(numbers + 1 + i), zero{};
    counts = simd::count_equal(a, b, simd::count_equal(a, zero, counts));
  }
  *reinterpret_cast<uint32_t*>(out.bytes) = simd::total(counts);
}

/** Of finite numbers, in ranges of every kind: without a bit to spare, of one number, of less than a number.
 */
void bins(const Input& in, Output& out) {
  const Bins ranges[] = {{-1, 1, 10},          {in.a < in.b ? in.a : 0, in.a < in.b ? in.b : 0, 65536},
                         {0, 1e-310, 7},       {-1e-310, 0, 7},
                         {-1e-310, 1e-310, 7}, {1, 1, 3},
                         {-0.1, 1e300, 256},   {-3e38, 3e38, 4096}};
  float numbers[16];
  std::memcpy(numbers, in.bytes, sizeof numbers);
  for (float& number : numbers) {
    if (!std::isfinite(number)) number = 0;
  }
  const Bins& range = ranges[in.bytes[64] % 8];
  if (!std::isfinite(range.low) || !std::isfinite(range.high)) return;
  auto* slots = reinterpret_cast<uint32_t*>(out.bytes);
  const BinRange bins(range);
  for (int i = 0; i < 16; i += simd::kLanes) {
    simd::store_slots(slots + i, numbers + i, bins);
    if (bins.guess.is_useful && simd::guess_slots(slots + 16 + i, numbers + i, bins)) continue;
    simd::store_slots(slots + 16 + i, numbers + i, bins);
  }
}

// ---- storing: at 16 modulo 64, as memory of JavaScript is; streaming and aligned stores at 0

template <Store kStore>
uint8_t* place_in(Output& out) {
  return out.bytes + (kStore == Store::kStreaming ? 0 : 16);
}

template <Store kStore>
void store(const Input& in, Output& out) {
  simd::store<kStore>(reinterpret_cast<float*>(place_in<kStore>(out)), simd::load_f32(in.bytes),
                      simd::load_f32(in.bytes + 64));
  simd::store_fence();
}

/** As many numbers for every set. */
template <Out kOut, Store kStore>
void convert(const Input& in, Output& out) {
  constexpr int kNumbers = 128;
  static_assert(kNumbers % simd::kConverted == 0, "whole calls");
  auto* const to = reinterpret_cast<uint16_t*>(place_in<kStore>(out));
  for (int i = 0; i < kNumbers; i += simd::kConverted) {
    simd::convert<kOut, kStore>(to + i, reinterpret_cast<const float*>(in.bytes) + i);
  }
  simd::store_fence();
}

void store_aligned(const Input& in, Output& out) {
  simd::store_aligned(reinterpret_cast<float*>(out.bytes), simd::load_f32(in.bytes));
}

using test::Kind;
constexpr Kind kFloat32 = Kind::kFloat32, kBytes = Kind::kBytes;

#define CASE(kind, ...) \
  { #__VA_ARGS__, kind, __VA_ARGS__ }

constexpr test::PrimitiveCase kCases[] = {
    CASE(kFloat32, load<1>),
    CASE(kFloat32, load<2>),
    CASE(kFloat32, load<3>),
    CASE(kFloat32, load<4>),
    CASE(kFloat32, load<5>),
    CASE(kFloat32, load<6>),
    CASE(kFloat32, load_twice<3>),
    CASE(kFloat32, load_twice<5>),
    CASE(kFloat32, load_twice<6>),
    CASE(kFloat32, load_runs<4, 17>),
    CASE(kFloat32, load_runs<4, 18>),
    CASE(kFloat32, load_runs<4, 20>),
    CASE(kFloat32, load_runs<5, 22>),
    CASE(kFloat32, load_runs<5, 24>),
    CASE(kFloat32, load_packed<2>),
    CASE(kFloat32, load_nibble_runs<4>),
    CASE(kFloat32, spread_bits<1>),
    CASE(kFloat32, spread_bits<5>),
    CASE(kFloat32, gather8<Iq2, kIq2xxsBook, 256>),
    CASE(kFloat32, gather8<Iq2, kIq2xsBook, 512>),
    CASE(kFloat32, gather8<Iq2, kIq2sBook, 1024>),
    CASE(kFloat32, gather8_uniform<Iq1, kIq1sBook, 2048>),
    CASE(kFloat32, gather16<Iq3xxs, kIq3xxsBook, 256>),
    CASE(kFloat32, gather16<Iq3s, kIq3sBook, 512>),
    CASE(kBytes, join_rows<1, 1, 16>),
    CASE(kBytes, join_rows<2, 2, 4>),
    CASE(kBytes, join_rows<3, 3, 4>),
    CASE(kBytes, join_rows<4, 4, 4>),

    CASE(kFloat32, shift<2, 0>),
    CASE(kFloat32, shift<2, 2>),
    CASE(kFloat32, shift<2, 4>),
    CASE(kFloat32, shift<2, 6>),
    CASE(kFloat32, shift<3, -2>),
    CASE(kFloat32, shift<3, -1>),
    CASE(kFloat32, shift<3, 1>),
    CASE(kFloat32, shift<3, 4>),
    CASE(kFloat32, shift<4, 4>),
    CASE(kFloat32, shift<5, 4>),
    CASE(kFloat32, shift<6, 4>),
    CASE(kFloat32, shift_runs<4, 18>),
    CASE(kFloat32, shift_runs<5, 22>),
    CASE(kFloat32, shift_halves<3, 0, 4>),
    CASE(kFloat32, shift_halves<5, -4, -2>),
    CASE(kFloat32, shift_halves<5, -3, -1>),
    CASE(kFloat32, shift_halves<5, 0, 2>),
    CASE(kFloat32, shift_halves<5, 1, 3>),
    CASE(kFloat32, shift_halves<6, -4, -2>),
    CASE(kFloat32, shift_halves<6, 0, 2>),
    CASE(kFloat32, select<3, 3>),
    CASE(kFloat32, select<5, 15>),
    CASE(kFloat32, select<6, 15>),
    CASE(kFloat32, trits<0>),
    CASE(kFloat32, trits<1>),
    CASE(kFloat32, trits<2>),
    CASE(kFloat32, trits<3>),
    CASE(kFloat32, trits<4>),

    CASE(kFloat32, scaled_bits<Sign>),
    CASE(kFloat32, scaled<Ternary>),
    CASE(kFloat32, scaled<Offset<3>>),
    CASE(kFloat32, scaled<Iq1>),
    CASE(kFloat32, scaled<Iq2>),
    CASE(kFloat32, scaled<Iq3xxs>),
    CASE(kFloat32, scaled<Iq3s>),
    CASE(kFloat32, scaled<Nonlinear4>),
    CASE(kFloat32, scaled<Fp4>),
    CASE(kFloat32, scaled_by_half<Offset<4>>),
    CASE(kFloat32, scaled_by_half<Offset<5>>),
    CASE(kFloat32, scaled_by_half<Offset<6>>),
    CASE(kFloat32, scaled_values<Fp4>),
    CASE(kFloat32, scaled_values<Nonlinear4>),
    CASE(kFloat32, scaled_high<Offset<4>>),
    CASE(kFloat32, scaled_high<Nonlinear4>),
    CASE(kFloat32, affine<Unsigned<2>>),
    CASE(kFloat32, affine<Unsigned<4>>),
    CASE(kFloat32, affine<Unsigned<5>>),
    CASE(kFloat32, affine_high<Unsigned<4>>),

    CASE(kBytes, bytes<Unsigned<2>>),
    CASE(kBytes, bytes<Unsigned<4>>),
    CASE(kBytes, bytes<Offset<3>>),
    CASE(kBytes, bytes<Offset<4>>),
    CASE(kBytes, bytes<Offset<6>>),
    CASE(kBytes, bytes<Ternary>),
    CASE(kBytes, bytes<Nonlinear4>),
    CASE(kBytes, bytes_twice<Unsigned<5>>),
    CASE(kBytes, bytes_of_bits<Sign>),
    CASE(kBytes, largest_of_runs),
    CASE(kBytes, round_run),
    CASE(kBytes, bytes_of_packed<Ternary>),
    CASE(kBytes, bytes_of_nibble_runs<Fp4>),
    CASE(kBytes, bytes_high<Unsigned<4>>),
    CASE(kBytes, bytes_of_runs<Offset<4>, 18>),
    CASE(kBytes, bytes_of_runs<Unsigned<4>, 20>),
    CASE(kBytes, bytes_of_runs<Fp4, 17>),
    CASE(kBytes, bytes_of_runs<Nonlinear4, 16>),
    CASE(kBytes, bytes_of_runs<Offset<5>, 22>),
    CASE(kBytes, bytes_of_runs<Unsigned<5>, 24>),
    CASE(kBytes, bytes_of_units<Ternary>),
    CASE(kBytes, bytes_of_units<Offset<5>>),
    CASE(kBytes, bytes_shifted<Offset<6>, 0, 2, 15>),
    CASE(kBytes, bytes_shifted<Offset<6>, -4, -2, 15>),
    CASE(kBytes, bytes_shifted<Offset<3>, 0, 4, 3>),
    CASE(kBytes, bytes_shifted<Unsigned<5>, -3, -1, 15>),
    CASE(kBytes, bytes_of_trits<0>),
    CASE(kBytes, bytes_of_trits<4>),
    CASE(kBytes, bytes_of_rows8<Iq2, kIq2xxsBook, 256>),
    CASE(kBytes, bytes_of_rows8<Iq2, kIq2xsBook, 512>),
    CASE(kBytes, bytes_of_rows8<Iq2, kIq2sBook, 1024>),
    CASE(kBytes, bytes_of_rows16<Iq3xxs, kIq3xxsBook, 256>),
    CASE(kBytes, bytes_of_rows16<Iq3s, kIq3sBook, 512>),
    CASE(kBytes, signed_bytes),
    CASE(kFloat32, dot<Unsigned<4>, 32>),
    CASE(kFloat32, dot<Offset<6>, 16>),
    CASE(kFloat32, dot<Iq3xxs, 32>),
    CASE(kFloat32, dot<Nonlinear4, 32>),
    CASE(kFloat32, dot<Signed8, 16>),
    CASE(kFloat32, dot<Signed8, 32>),
    CASE(kFloat32, dot_rows<Offset<4>, 18>),
    CASE(kFloat32, dot_rows<Nonlinear4, 16>),
    CASE(kFloat32, dot_rows<Unsigned<5>, 24>),
    CASE(kFloat32, dot_pairs<Unsigned<4>>),
    CASE(kFloat32, dot_pairs<Unsigned<5>>),
    CASE(kFloat32, dot_pairs<Offset<4>>),
    CASE(kFloat32, eight_numbers),
    CASE(kFloat32, multiply_run<Unsigned<4>, 32>),
    CASE(kFloat32, multiply_run<Unsigned<2>, 16>),
    CASE(kFloat32, multiply_run<Unsigned<5>, 32>),
    CASE(kFloat32, multiply_run<Offset<6>, 16>),
    CASE(kFloat32, multiply_run<Iq3xxs, 32>),
    CASE(kFloat32, multiply_run<Nonlinear4, 32>),
    CASE(kFloat32, multiply_run<Signed8, 32>),

    CASE(kFloat32, load_f32),
    CASE(kFloat32, load_f16),
    CASE(kFloat32, load_bf16),
    CASE(kFloat32, load_int8),
    CASE(kFloat32, load_int16),
    CASE(kFloat32, load_int32),
    CASE(kFloat32, load_int64),
    CASE(kFloat32, load_f64),
    CASE(kFloat32, int8x16),
    CASE(kFloat32, load_sixes),
    CASE(kFloat32, join_sixes),
    CASE(kFloat32, half),
    CASE(kFloat32, halves<18>),
    CASE(kFloat32, halves<20>),
    CASE(kFloat32, halves<22>),
    CASE(kFloat32, halves<24>),
    CASE(kFloat32, halves<34>),
    CASE(kFloat32, halves<36>),
    CASE(kFloat32, add),
    CASE(kFloat32, mul),
    CASE(kFloat32, mul_halves),
    CASE(kFloat32, add_numbers),
    CASE(kFloat32, fma),
    CASE(kFloat32, fma_of_close_numbers),
    CASE(kFloat32, sum),
    CASE(kFloat32, sums),
    CASE(kFloat32, lanes),
    CASE(Kind::kFloat64, double_sums),
    CASE(Kind::kFloat64, double_differences),
    CASE(Kind::kFloat64, double_maxima),
    CASE(Kind::kFloat64, squares),
    CASE(Kind::kFloat64, rounded_squares),
    CASE(kBytes, lane_maxima),
    CASE(kBytes, equal_counts),
    CASE(kBytes, bins),
    CASE(kFloat32, store<Store::kPlain>),
    CASE(kFloat32, store<Store::kStreaming>),
    CASE(Kind::kFloat16, convert<Out::kFloat16, Store::kPlain>),
    CASE(Kind::kFloat16, convert<Out::kFloat16, Store::kStreaming>),
    CASE(Kind::kBFloat16, convert<Out::kBFloat16, Store::kPlain>),
    CASE(Kind::kBFloat16, convert<Out::kBFloat16, Store::kStreaming>),
    CASE(kFloat32, store_aligned),
};
#undef CASE

constexpr test::PrimitiveTable kPrimitives = {simd::kName, kCases, sizeof kCases / sizeof *kCases};
#undef GGUF_THESE_PRIMITIVES
#define GGUF_THESE_PRIMITIVES &cases::kPrimitives

}  // namespace cases
}  // namespace
}  // namespace gguf
