// Cases of products of levels as bytes; and what all cases use.
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

/** What a set has added to levels that it stores. */
template <class Levels>
constexpr int kStoredBias = simd::kSignedTiles ? 0 : simd::kByteBias<Levels>;

void largest_of_runs(const Input& in, Output& out) {
  constexpr int kRuns = 5;
  float x[32 * kRuns];
  std::memcpy(x, in.bytes, sizeof x);
  int32_t most[8];
  simd::largest_of_runs(x, kRuns, most);
  std::memcpy(out.bytes, most, kRuns * sizeof *most);
}

/** Of 32 numbers whose products are from -127 to 127, many of them half-way between two integers. */
void round_run(const Input& in, Output& out) {
  float x[32];
  for (int i = 0; i < 32; ++i) {
    const float number = static_cast<float>(static_cast<int16_t>(word16(in.bytes + 2 * i))) / 256;
    x[i] = number < -127 ? -127 : number > 127 ? 127 : number;
  }
  int8_t codes[32];
  int32_t sums[2];
  simd::round_run(x, in.bytes[64] % 2 ? 1 : 0.4f, codes, sums);
  std::memcpy(out.bytes, codes, sizeof codes);
  std::memcpy(out.bytes + sizeof codes, sums, sizeof sums);
}

/** A vector of int8: any but -128. */
struct Int8s {
  int8_t x[256];
  explicit Int8s(const uint8_t* p) {
    for (int i = 0; i < 256; ++i) x[i] = p[i] == 0x80 ? 0 : static_cast<int8_t>(p[i]);
  }
  /** What the bias of levels adds to the sums of products, negated. */
  int32_t correction(int bias, int first, int n) const {
    int32_t sum = 0;
    for (int i = first; i < first + n; ++i) sum += x[i];
    return -bias * sum;
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
  constexpr int kBias = simd::kByteBias<Levels>;
  for (int r = 0; r < 256 / kRun; ++r) corrections[r] = vector.correction(kBias, kRun * r, kRun);
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

/** Products of 32 rows with three vectors. */
template <class Levels, int kRun>
void multiply_run(const Input& in, Output& out) {
  constexpr int kKind = simd::kByteKind<Levels>, kLevelBytes = simd::kLevelBytes<kKind>;
  constexpr int kLanes = simd::kLanes, kRows = simd::kRowRegisters * kLanes, kVectors = 3;
  constexpr int kStride = 32 * kLevelBytes, kRunWords = kRun * kLevelBytes / 4;
  using Number = std::conditional_t<kLevelBytes == 1, int8_t, int16_t>;
  const Int8s vectors(in.bytes + 320);
  for (int first = 0; first < 32; first += kRows) {
    // Rows that are 8 bytes apart.
    uint8_t rows[kStride * kRows], w[kStride * kRows];
    for (int row = 0; row < kRows; ++row) {
      const uint8_t* const p = in.bytes + 8 * (first + row);
      simd::Bytes32 bytes;
      if constexpr (Levels::kBits == 8) {
        bytes = simd::level_bytes<Levels>(SignedBytes{p}, 0);
      } else {
        bytes =
            simd::level_bytes<Levels>(simd::values<Levels>(simd::load_twice<Levels::kBits>(p, ToBytes{})), 0);
      }
      simd::store_bytes<Levels>(rows + kStride * row, bytes);
    }
    simd::transpose<kRunWords>(rows, kStride, w);
    uint8_t x[kStride * kVectors];
    simd::IntLanes sums[kVectors][simd::kRowRegisters];
    for (int v = 0; v < kVectors; ++v) {
      Number numbers[kRun];
      for (int i = 0; i < kRun; ++i) numbers[i] = vectors.x[32 * v + i];
      for (int i = 0; i < kRunWords; ++i) {
        std::memcpy(x + 4 * (kVectors * i + v), numbers + 4 / kLevelBytes * i, 4);
      }
      const int32_t correction = vectors.correction(kStoredBias<Levels>, 32 * v, kRun);
      for (simd::IntLanes& sum : sums[v]) sum = simd::broadcast_int(&correction);
    }
    simd::multiply_run<kRun, kKind, kVectors>(w, x, sums);
    for (int v = 0; v < kVectors; ++v) {
      for (int k = 0; k < simd::kRowRegisters; ++k) {
        const simd::Lanes y = simd::add(simd::mul(simd::to_lanes(sums[v][k]), simd::broadcast(&in.scale)),
                                        simd::broadcast(&in.a));
        simd::store_lanes(reinterpret_cast<float*>(out.bytes) + 32 * v + first + kLanes * k, y);
      }
    }
  }
}

}  // namespace cases
}  // namespace
}  // namespace gguf
