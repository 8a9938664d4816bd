// Every primitive of simd/ on its own, with the template arguments that kernels use. Included once by each
// primitives_*.cc, after an instruction set; see primitives.h.
//
// Codes can only be seen as numbers: `put_codes` scales them by 1.
#pragma once

#include "test/native/dequant/primitives.h"

#ifndef GGUF_SIMD_SET
#include "dequant/simd/scalar_bytes.h"
#endif

namespace gguf {
namespace {
namespace cases {

using Input = test::PrimitiveInput;
using Output = test::PrimitiveOutput;

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

template <int Bits>
void load(const Input& in, Output& out) {
  put_codes<Bits>(simd::load<Bits>(in.bytes), out);
}

template <int Bits>
void load_twice(const Input& in, Output& out) {
  put_codes<Bits>(simd::load_twice<Bits>(in.bytes), out);
}

template <int Bits, int Stride>
void load_runs(const Input& in, Output& out) {
  put_codes<Bits>(simd::load_runs<Bits, Stride>(in.bytes), out);
}

template <int Bits>
void load_packed(const Input& in, Output& out) {
  put_codes<Bits>(simd::load_packed<Bits>(in.bytes), out);
}

template <int Bits>
void load_nibble_runs(const Input& in, Output& out) {
  put_codes<Bits>(simd::load_nibble_runs<Bits>(in.bytes), out);
}

template <int Bits>
void spread_bits(const Input& in, Output& out) {
  put_codes<Bits>(simd::spread_bits<Bits>(word64(in.bytes)), out);
}

/** Some rows of a codebook: their numbers are below a power of two, kRows. */
template <const auto& kBook, int kRows, int kCount>
simd::BookRows<kBook, kCount> some_rows(const uint8_t* p) {
  simd::BookRows<kBook, kCount> rows;
  for (int i = 0; i < kCount; ++i) rows.number[i] = word16(p + 2 * i) & (kRows - 1);
  rows.find();
  return rows;
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
  const auto rows = some_rows<kBook, kRows, 32>(in.bytes);
  uint8_t tops[8];
  for (int i = 0; i < 8; ++i) tops[i] = in.bytes[64 + i] & 1 ? 0xff : 0;
  put_units(simd::values<Levels>(simd::gather8<Levels>(rows, 8 * (in.bytes[72] & 3), tops)),
            simd::Scaled<Levels>(in.a), out);
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

/** Levels of up to three bits, and levels that are not linear: any scale. */
template <class Levels>
void scaled(const Input& in, Output& out) {
  const auto codes = simd::load<Levels::kBits>(in.bytes);
  put_units(simd::values<Levels>(codes), simd::Scaled<Levels>(in.a), out);
}

template <class Levels>
void scaled_bits(const Input& in, Output& out) {
  const auto codes = simd::spread_bits<Levels::kBits>(word64(in.bytes));
  put_units(simd::values<Levels>(codes), simd::Scaled<Levels>(in.a), out);
}

/** Linear levels of four bits or more. */
template <class Levels>
void scaled_by_half(const Input& in, Output& out) {
  const auto codes = simd::load<Levels::kBits>(in.bytes);
  put_units(simd::values<Levels>(codes), simd::Scaled<Levels>(in.scale), out);
}

/** As Values themselves, which the sets make of Codes: shifts of runs are none, with AVX2. */
template <class Levels>
void scaled_values(const Input& in, Output& out) {
  const simd::Values<Levels> v(simd::load_nibble_runs<Levels::kBits>(in.bytes));
  put_units(v, simd::Scaled<Levels>(in.scale), out);
}

template <class Levels>
void scaled_high(const Input& in, Output& out) {
  const auto codes = simd::shift<4>(simd::load<Levels::kBits>(in.bytes));
  put_units(simd::values<Levels>(codes), simd::Scaled<Levels>(in.scale), out);
}

template <class Levels>
void affine(const Input& in, Output& out) {
  const auto codes = simd::load<Levels::kBits>(in.bytes);
  put_units(simd::values<Levels>(codes), simd::Affine<Levels>(in.scale, in.b), out);
}

template <class Levels>
void affine_high(const Input& in, Output& out) {
  const auto codes = simd::shift<4>(simd::load<Levels::kBits>(in.bytes));
  put_units(simd::values<Levels>(codes), simd::Affine<Levels>(in.scale, in.b), out);
}

// ---- bytes: without what a set adds to levels

template <class Levels>
GGUF_INLINE void put_bytes(const simd::Bytes32& bytes, Output& out, int place) {
  uint8_t stored[32];
  simd::store_bytes(stored, bytes);
  for (int i = 0; i < 32; ++i) {
    out.bytes[32 * place + i] = static_cast<uint8_t>(stored[i] - simd::kByteBias<Levels>);
  }
}

template <class Levels, class Values>
GGUF_INLINE void put_levels(const Values& v, Output& out) {
  put_bytes<Levels>(simd::level_bytes<Levels>(v, 0), out, 0);
  put_bytes<Levels>(simd::level_bytes<Levels>(v, 2), out, 1);
}

template <class Levels>
void bytes(const Input& in, Output& out) {
  put_levels<Levels>(simd::values<Levels>(simd::load<Levels::kBits>(in.bytes, ToBytes{})), out);
}

template <class Levels>
void bytes_twice(const Input& in, Output& out) {
  put_levels<Levels>(simd::values<Levels>(simd::load_twice<Levels::kBits>(in.bytes, ToBytes{})), out);
}

template <class Levels>
void bytes_of_bits(const Input& in, Output& out) {
  put_levels<Levels>(simd::values<Levels>(simd::spread_bits<Levels::kBits>(word64(in.bytes), ToBytes{})),
                     out);
}

template <class Levels>
void bytes_of_packed(const Input& in, Output& out) {
  put_levels<Levels>(simd::values<Levels>(simd::load_packed<Levels::kBits>(in.bytes, ToBytes{})), out);
}

template <class Levels>
void bytes_of_nibble_runs(const Input& in, Output& out) {
  put_levels<Levels>(simd::values<Levels>(simd::load_nibble_runs<Levels::kBits>(in.bytes, ToBytes{})), out);
}

template <class Levels>
void bytes_high(const Input& in, Output& out) {
  put_levels<Levels>(simd::values<Levels>(simd::shift<4>(simd::load<Levels::kBits>(in.bytes, ToBytes{}))),
                     out);
}

/** A unit of the codes, and the same unit of their upper bits. */
template <class Levels, int Stride>
void bytes_of_runs(const Input& in, Output& out) {
  const auto codes = simd::load_runs<Levels::kBits, Stride>(in.bytes, ToBytes{});
  const auto low = simd::values<Levels>(codes);
  const auto high = simd::values<Levels>(simd::shift<4>(codes));
  if constexpr (Levels::kBits == 4) {
    put_bytes<Levels>(simd::level_bytes<Levels>(low, 0, high, 0), out, 0);
    put_bytes<Levels>(simd::level_bytes<Levels>(low, 1, high, 1), out, 1);
    put_bytes<Levels>(simd::level_bytes<Levels>(low, 2, high, 2), out, 2);
    put_bytes<Levels>(simd::level_bytes<Levels>(low, 3, high, 3), out, 3);
  } else {
    put_levels<Levels>(low, out);
  }
}

/** Any two units. */
template <class Levels>
void bytes_of_units(const Input& in, Output& out) {
  const auto a = simd::values<Levels>(simd::load<Levels::kBits>(in.bytes, ToBytes{}));
  const auto b = simd::values<Levels>(simd::load<Levels::kBits>(in.bytes + 64, ToBytes{}));
  put_bytes<Levels>(simd::level_bytes<Levels>(a, 0, b, 0), out, 0);
  put_bytes<Levels>(simd::level_bytes<Levels>(a, 3, b, 1), out, 1);
  put_bytes<Levels>(simd::level_bytes<Levels>(a, 2, b, 3), out, 2);
  put_bytes<Levels>(simd::level_bytes<Levels>(a, 1, b, 2), out, 3);
}

template <class Levels, int A, int B, int Mask>
void bytes_shifted(const Input& in, Output& out) {
  const auto a = simd::load<Levels::kBits>(in.bytes, ToBytes{}),
             b = simd::load_twice<Levels::kBits>(in.bytes + 64, ToBytes{});
  put_levels<Levels>(simd::values<Levels>(simd::select<Mask>(a, simd::shift_halves<A, B>(b))), out);
}

template <int Digit>
void bytes_of_trits(const Input& in, Output& out) {
  auto t = simd::load_trits(in.bytes, ToBytes{});
  for (int i = 0; i < Digit; ++i) t = simd::times3(t);
  put_levels<Ternary>(simd::values<Ternary>(simd::top_trits(t)), out);
}

template <class Levels, const auto& kBook, int kRows>
void bytes_of_rows8(const Input& in, Output& out) {
  const auto rows = some_rows<kBook, kRows, 32>(in.bytes);
  const int first = 8 * (in.bytes[72] & 3);
  put_levels<Levels>(simd::values<Levels>(simd::gather8<Levels>(rows, first, in.bytes + 64, ToBytes{})), out);
}

template <class Levels, const auto& kBook, int kRows>
void bytes_of_rows16(const Input& in, Output& out) {
  const auto rows = some_rows<kBook, kRows, 64>(in.bytes);
  const int first = 16 * (in.bytes[136] & 3);
  put_levels<Levels>(simd::values<Levels>(simd::gather16<Levels>(rows, first, in.bytes + 128, ToBytes{})),
                     out);
}

void signed_bytes(const Input& in, Output& out) {
  put_levels<Signed8>(SignedBytes{in.bytes}, out);
}

/** A vector of int8: any but -128. */
struct Int8s {
  int8_t x[256];
  explicit Int8s(const uint8_t* p) {
    for (int i = 0; i < 256; ++i) x[i] = p[i] == 0x80 ? 0 : static_cast<int8_t>(p[i]);
  }
  /** What the bias of levels adds to the sums of products, negated. */
  template <class Levels>
  int32_t correction(int first, int n) const {
    int32_t sum = 0;
    for (int i = first; i < first + n; ++i) sum += x[i];
    return -simd::kByteBias<Levels> * sum;
  }
};

/** 128 columns, as dot() takes them. */
template <int kRun>
struct Columns {
  int8_t codes[64], last_halves[64];
  DotColumns<kRun> columns;
  explicit Columns(const int8_t* x) : columns{x, nullptr} {
    if (kRun == 16) return;
    for (int i = 0; i < 64; ++i) {
      codes[i] = x[i / 16 * 32 + i % 16];
      last_halves[i] = x[i / 16 * 32 + 16 + i % 16];
    }
    columns = {codes, last_halves};
  }
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;
};

/** Stores sums of 256 products, without what the bias of levels has added. */
template <class Levels, int kRun>
GGUF_INLINE void put_sums(const simd::DotSums<kRun> (&sums)[2], const Int8s& vector, Output& out) {
  int32_t corrections[16];
  for (int r = 0; r < 256 / kRun; ++r) corrections[r] = vector.template correction<Levels>(kRun * r, kRun);
  auto* const y = reinterpret_cast<float*>(out.bytes);
  if constexpr (kRun == 32) {
    simd::store_8(y, simd::to_floats(simd::add(simd::eight_sums(sums[0], sums[1]), corrections)));
  } else {
    simd::Ints8 eight[2];
    simd::sixteen_sums(sums[0], sums[1], eight);
    simd::store_8(y, simd::to_floats(simd::add(eight[0], corrections)));
    simd::store_8(y + 8, simd::to_floats(simd::add(eight[1], corrections + 8)));
  }
}

/** Sums of 256 products. */
template <class Levels, int kRun>
void dot(const Input& in, Output& out) {
  constexpr int kKind = simd::kByteKind<Levels>;
  static_assert(kKind < simd::kByteKinds && simd::kByteVectors > 0, "a kind of the set");
  const Int8s vector(in.bytes + 256);
  simd::DotSums<kRun> sums[2];
  for (int i = 0; i < 2; ++i) {
    simd::Bytes32 w[4];
    for (int k = 0; k < 4; ++k) {
      const uint8_t* const p = in.bytes + 128 * i + 32 * k;
      if constexpr (Levels::kBits == 8) {
        w[k] = simd::level_bytes<Levels>(SignedBytes{p}, 0);
      } else {
        w[k] =
            simd::level_bytes<Levels>(simd::values<Levels>(simd::load_twice<Levels::kBits>(p, ToBytes{})), 0);
      }
    }
    const Columns<kRun> x(vector.x + 128 * i);
    sums[i] = simd::dot<kRun, kKind>(w[0], w[1], w[2], w[3], x.columns);
  }
  put_sums<Levels, kRun>(sums, vector, out);
}

/** The same of units of the codes, and the same units of their upper bits. */
template <class Levels, int Stride>
void dot_rows(const Input& in, Output& out) {
  const Int8s vector(in.bytes + 256);
  simd::DotSums<32> sums[2];
  for (int i = 0; i < 2; ++i) {
    const Columns<32> x(vector.x + 128 * i);
    const auto codes = simd::load_runs<Levels::kBits, Stride>(in.bytes + 100 * i, ToBytes{});
    if constexpr (Levels::kBits == 4) {
      sums[i] = simd::dot_rows<Levels>(simd::values<Levels>(codes),
                                       simd::values<Levels>(simd::shift<4>(codes)), x.columns);
    } else {
      const auto top = simd::spread_bits<Levels::kBits>(word64(in.bytes + 200 + 8 * i), ToBytes{});
      sums[i] = simd::dot_rows<Levels>(simd::values<Levels>(simd::select<15>(codes, top)),
                                       simd::values<Levels>(simd::select<15>(simd::shift<4>(codes), top)),
                                       x.columns);
    }
  }
  put_sums<Levels, 32>(sums, vector, out);
}

template <class Levels>
void dot_pairs(const Input& in, Output& out) {
  const Int8s vector(in.bytes + 256);
  simd::DotSums<32> sums[2];
  for (int i = 0; i < 2; ++i) {
    const Columns<32> x(vector.x + 128 * i);
    const auto codes = simd::load<Levels::kBits>(in.bytes + 100 * i, ToBytes{});
    if constexpr (Levels::kBits == 4) {
      sums[i] = simd::dot_pairs<Levels>(simd::values<Levels>(codes),
                                        simd::values<Levels>(simd::shift<4>(codes)), x.columns);
    } else {
      const auto top = simd::load_twice<Levels::kBits>(in.bytes + 200, ToBytes{});
      sums[i] = simd::dot_pairs<Levels>(simd::values<Levels>(simd::select<15>(codes, top)),
                                        simd::values<Levels>(simd::select<15>(simd::shift<4>(codes), top)),
                                        x.columns);
    }
  }
  put_sums<Levels, 32>(sums, vector, out);
}

void eight_numbers(const Input& in, Output& out) {
  const auto* x = reinterpret_cast<const float*>(in.bytes);
  auto* const y = reinterpret_cast<float*>(out.bytes);
  const simd::Floats8 a = simd::load_8(x), b = simd::load_8(x + 8);
  simd::store_8(y, simd::mul(a, b));
  simd::store_8(y + 8, simd::add(a, b));
  simd::store_8(y + 16, simd::floats_8(x[7], x[0], x[1], x[2], x[3], x[4], x[5], x[6]));
  const int first = in.bytes[64] % 12 - 2, end = in.bytes[65] % 12 - 1;
  simd::store_8(y + 24, simd::keep(a, first, end));
  y[32] = simd::sum(a);
}

/** Products of 16 rows with three vectors. */
template <class Levels, int kRun>
void multiply_run(const Input& in, Output& out) {
  constexpr int kLanes = simd::kLanes, kVectors = 3;
  const Int8s vectors(in.bytes + 320);
  for (int first = 0; first < 16; first += kLanes) {
    // Rows that are 8 bytes apart.
    uint8_t rows[32 * 16], w[32 * 16];
    for (int row = 0; row < kLanes; ++row) {
      const uint8_t* const p = in.bytes + 8 * (first + row);
      simd::Bytes32 bytes;
      if constexpr (Levels::kBits == 8) {
        bytes = simd::level_bytes<Levels>(SignedBytes{p}, 0);
      } else {
        bytes =
            simd::level_bytes<Levels>(simd::values<Levels>(simd::load_twice<Levels::kBits>(p, ToBytes{})), 0);
      }
      simd::store_bytes(rows + 32 * row, bytes);
    }
    simd::transpose<kRun / 4>(rows, 32, w);
    uint8_t x[32 * kVectors];
    simd::IntLanes sums[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      for (int i = 0; i < kRun; i += 4) std::memcpy(x + kVectors * i + 4 * v, vectors.x + 32 * v + i, 4);
      const int32_t correction = vectors.correction<Levels>(32 * v, kRun);
      sums[v] = simd::broadcast_int(&correction);
    }
    simd::multiply_run<kRun, simd::kByteKind<Levels>, kVectors>(w, x, sums);
    for (int v = 0; v < kVectors; ++v) {
      const simd::Lanes y =
          simd::add(simd::mul(simd::to_lanes(sums[v]), simd::broadcast(&in.scale)), simd::broadcast(&in.a));
      simd::store_lanes(reinterpret_cast<float*>(out.bytes) + 16 * v + first, y);
    }
  }
}

// ---- floats

void load_f32(const Input& in, Output& out) {
  put(simd::load_f32(in.bytes), out);
}
void load_f16(const Input& in, Output& out) {
  put(simd::load_f16(in.bytes), out);
}
void load_bf16(const Input& in, Output& out) {
  put(simd::load_bf16(in.bytes), out);
}
void load_int8(const Input& in, Output& out) {
  put(simd::load_int8(in.bytes), out);
}
void load_int16(const Input& in, Output& out) {
  put(simd::load_int16(in.bytes), out);
}
void load_int32(const Input& in, Output& out) {
  put(simd::load_int32(in.bytes), out);
}
void load_int64(const Input& in, Output& out) {
  put(simd::load_int64(in.bytes), out);
}
void load_f64(const Input& in, Output& out) {
  put(simd::load_f64(in.bytes), out);
}
void int8x16(const Input& in, Output& out) {
  put(simd::int8x16(word64(in.bytes), word64(in.bytes + 8)), out);
}

void load_sixes(const Input& in, Output& out) {
  put(simd::load_sixes(in.bytes), out);
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
  put(simd::mul(simd::load_f32(in.bytes), in.a, in.b), out);
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

void double_sums(const Input& in, Output& out) {
  put_doubles(in, out, [](const simd::Doubles& a, const simd::Doubles& b) { return simd::add(a, b); });
}

void double_differences(const Input& in, Output& out) {
  put_doubles(in, out, [](const simd::Doubles& a, const simd::Doubles& b) {
    return simd::magnitude(simd::sub(a, b));
  });
}

void double_maxima(const Input& in, Output& out) {
  put_doubles(in, out, [](const simd::Doubles& a, const simd::Doubles& b) { return simd::max(a, b); });
}

void squares(const Input& in, Output& out) {
  put_doubles(in, out, [](const simd::Doubles& a, const simd::Doubles& b) { return simd::add_square(a, b); });
}

void rounded_squares(const Input& in, Output& out) {
  put_doubles(in, out, [](const simd::Doubles& a, const simd::Doubles& b) {
    return simd::add_rounded_square(simd::sub(a, b), b);
  });
}

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

constexpr test::PrimitiveTable kPrimitives = {simd::kName,
                                              simd::kStreams,
                                              simd::kMultipliesInKernels,
                                              simd::kMeasuresInKernels,
                                              simd::kPairRegisters,
                                              simd::kTileSums,
                                              kCases,
                                              sizeof kCases / sizeof *kCases};

}  // namespace cases
}  // namespace
}  // namespace gguf
