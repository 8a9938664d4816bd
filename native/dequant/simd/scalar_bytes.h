// Levels as bytes, and exact sums of their products with int8, in plain C++: the definition of these
// primitives, as scalar.h is that of the others. Bytes are signed levels.
#pragma once

#include "dequant/simd/scalar.h"

namespace gguf {
namespace {
namespace simd {

constexpr int kByteKinds = 1;
constexpr bool kMultipliesCodesInKernels = false;
using CodeTransposer = void;
template <class Levels>
constexpr int kByteKind = 0;
template <class Levels>
constexpr int kByteBias = 0;
constexpr bool kSignedTiles = true;
template <int kKind>
constexpr int kLevelBytes = 1;
constexpr int kRowRegisters = 1;
constexpr int kByteVectors = 2;

// ---- bytes -----------------------------------------------------------------------------------------------

struct Bytes32 {
  int8_t x[32];
};

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const Values<Levels>& a, int i, const Values<Levels>& b, int k) {
  Bytes32 r;
  std::memcpy(r.x, a.level + 16 * i, 16);
  std::memcpy(r.x + 16, b.level + 16 * k, 16);
  return r;
}

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const SignedBytes& v, int unit) {
  Bytes32 r;
  std::memcpy(r.x, v.p + 16 * unit, 32);
  return r;
}

template <class Levels>
GGUF_INLINE void store_bytes(uint8_t* to, const Bytes32& a) {
  std::memcpy(to, a.x, 32);
}

// ---- one row and one vector ------------------------------------------------------------------------------

/** Sums of products of 4 x 32 bytes: for each, of the lower 16 and of the upper 16. */
template <int kRun>
struct DotSums {
  int32_t lower[4], upper[4];
};

template <int kRun, int kKind>
GGUF_INLINE DotSums<kRun> dot(const Bytes32& a, const Bytes32& b, const Bytes32& c, const Bytes32& d,
                              const DotColumns<kRun>& x) {
  DotSums<kRun> sums{};
  const Bytes32* const w[4] = {&a, &b, &c, &d};
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 16; ++i) {
      sums.lower[k] += w[k]->x[i] * x.first_half(k)[i];
      sums.upper[k] += w[k]->x[16 + i] * x.last_half(k)[i];
    }
  }
  return sums;
}

struct Ints8 {
  int32_t x[8];
};

GGUF_INLINE Ints8 eight_sums(const DotSums<32>& a, const DotSums<32>& b) {
  Ints8 r;
  for (int i = 0; i < 4; ++i) {
    r.x[i] = a.lower[i] + a.upper[i];
    r.x[4 + i] = b.lower[i] + b.upper[i];
  }
  return r;
}

GGUF_INLINE void sixteen_sums(const DotSums<16>& a, const DotSums<16>& b, Ints8 (&sums)[2]) {
  for (int i = 0; i < 4; ++i) {
    sums[0].x[2 * i] = a.lower[i];
    sums[0].x[2 * i + 1] = a.upper[i];
    sums[1].x[2 * i] = b.lower[i];
    sums[1].x[2 * i + 1] = b.upper[i];
  }
}

GGUF_INLINE Ints8 add(Ints8 a, const int32_t* p) {
  int32_t b[8];
  std::memcpy(b, p, sizeof b);
  for (int i = 0; i < 8; ++i) a.x[i] += b[i];
  return a;
}

struct Floats8 {
  float x[8];
};

GGUF_INLINE Floats8 load_8(const float* p) {
  Floats8 r;
  std::memcpy(r.x, p, sizeof r.x);
  return r;
}

GGUF_INLINE void store_8(float* p, const Floats8& a) {
  std::memcpy(p, a.x, sizeof a.x);
}

GGUF_INLINE Floats8 floats_8(float a, float b, float c, float d, float e, float f, float g, float h) {
  return {{a, b, c, d, e, f, g, h}};
}

GGUF_INLINE Floats8 to_floats(const Ints8& a) {
  Floats8 r;
  for (int i = 0; i < 8; ++i) r.x[i] = static_cast<float>(a.x[i]);
  return r;
}

GGUF_INLINE Floats8 mul(Floats8 a, const Floats8& b) {
  for (int i = 0; i < 8; ++i) a.x[i] *= b.x[i];
  return a;
}

GGUF_INLINE Floats8 add(Floats8 a, const Floats8& b) {
  for (int i = 0; i < 8; ++i) a.x[i] += b.x[i];
  return a;
}

GGUF_INLINE float sum(Floats8 a) {
  for (int h = 4; h >= 1; h /= 2) {
    for (int i = 0; i < h; ++i) a.x[i] += a.x[i + h];
  }
  return a.x[0];
}

GGUF_INLINE Floats8 keep(Floats8 a, int first, int end) {
  for (int i = 0; i < 8; ++i) {
    if (i < first || i >= end) a.x[i] = 0;
  }
  return a;
}

// ---- rows and vectors ------------------------------------------------------------------------------------

struct IntLanes {
  int32_t x[kLanes];
};

GGUF_INLINE IntLanes broadcast_int(const void* p) {
  IntLanes r;
  for (int32_t& lane : r.x) std::memcpy(&lane, p, sizeof lane);
  return r;
}

template <int kRun, int kKind, int kVectors>
GGUF_INLINE void multiply_run(const uint8_t* w, const uint8_t* x, IntLanes (&sums)[kVectors][kRowRegisters]) {
  for (int i = 0; i < kRun; i += 4, w += 4 * kLanes) {
    for (int v = 0; v < kVectors; ++v, x += 4) {
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int k = 0; k < 4; ++k) {
          sums[v][0].x[lane] += static_cast<int8_t>(w[4 * lane + k]) * static_cast<int8_t>(x[k]);
        }
      }
    }
  }
}

GGUF_INLINE Lanes to_lanes(const IntLanes& a) {
  Lanes r;
  for (int i = 0; i < kLanes; ++i) r.x[i] = static_cast<float>(a.x[i]);
  return r;
}

GGUF_INLINE Lanes broadcast(const void* p) {
  Lanes r;
  for (float& lane : r.x) std::memcpy(&lane, p, sizeof lane);
  return r;
}

GGUF_INLINE Lanes mul(Lanes a, const Lanes& b) {
  for (int i = 0; i < kLanes; ++i) a.x[i] *= b.x[i];
  return a;
}

GGUF_INLINE Lanes add(Lanes a, const Lanes& b) {
  for (int i = 0; i < kLanes; ++i) a.x[i] += b.x[i];
  return a;
}

template <int kWords>
GGUF_INLINE void transpose(const uint8_t* rows, uint64_t stride, uint8_t* to) {
  for (int i = 0; i < kWords; ++i) {
    for (int row = 0; row < kLanes; ++row, to += 4) std::memcpy(to, rows + row * stride + 4 * i, 4);
  }
}

}  // namespace simd
}  // namespace
}  // namespace gguf

#include "dequant/simd/dots_of_units.h"
#include "dequant/simd/rounding.h"
