// Primitives of simd/ on their own, with the template arguments that kernels use: those of numbers, whose
// edges random blocks seldom have, and products of bytes, which some sets emulate here. The primitives of
// codes and levels have no edges: Isa.EqualsScalarForAnyBytes and IntegerRowProducts compare them in the
// kernels of all formats. Included once by each primitives_*.cc, after an instruction set; see primitives.h.
#pragma once

#include "test/native/dequant/primitive_byte_cases.h"

namespace gguf {
namespace {
namespace cases {

GGUF_INLINE void put(const simd::Floats16& x, Output& out, int unit = 0) {
  simd::store_aligned(reinterpret_cast<float*>(out.bytes) + 16 * unit, x);
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
    CASE(kBytes, largest_of_runs),
    CASE(kBytes, round_run),
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
