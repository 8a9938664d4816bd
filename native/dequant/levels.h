// The level of each code of each format: a small integer, before scaling.
//
// A Levels type has kBits, the number of bits of a code that are used, and value(code). kLinear is true if
// value(code) == code + value(0); then an instruction set may add and need not look up.
#pragma once

#include <cstdint>

namespace gguf {

/** 0, 1, 2 ... */
template <int Bits>
struct Unsigned {
  static constexpr int kBits = Bits;
  static constexpr bool kLinear = true;
  static constexpr int value(int code) { return code; }
};

/** Centred: -2^(Bits-1) ... 2^(Bits-1) - 1. */
template <int Bits>
struct Offset {
  static constexpr int kBits = Bits;
  static constexpr bool kLinear = true;
  static constexpr int value(int code) { return code - (1 << (Bits - 1)); }
};

/** -1, 0, 1; in Q2_0 also 2. */
struct Ternary {
  static constexpr int kBits = 2;
  static constexpr bool kLinear = true;
  static constexpr int value(int code) { return code - 1; }
};

/** A sign: -1, 1. */
struct Sign {
  static constexpr int kBits = 1;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) { return code == 0 ? -1 : 1; }
};

/** IQ4_NL, IQ4_XS: denser around zero, as weights are. */
struct Nonlinear4 {
  static constexpr int kBits = 4;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) {
    constexpr int kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    return kValues[code];
  }
};

/** MXFP4, NVFP4: twice the four-bit floats of two exponent bits and one fraction bit. There is no -0. */
struct Fp4 {
  static constexpr int kBits = 4;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) {
    constexpr int kMagnitudes[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    return code & 8 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
  }
};

// Codes of the codebook formats (codebooks.h), with a bit for the sign on top.

struct Iq2 {
  static constexpr int kBits = 3;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) {
    constexpr int kMagnitudes[4] = {8, 25, 43, 0};  // there is no code 3
    return code & 4 ? -kMagnitudes[code & 3] : kMagnitudes[code & 3];
  }
};

struct Iq3xxs {
  static constexpr int kBits = 4;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) {
    constexpr int kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    return code & 8 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
  }
};

struct Iq3s {
  static constexpr int kBits = 4;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) { return (code & 8 ? -1 : 1) * (2 * (code & 7) + 1); }
};

/** Eight times -1, 0 or 1 plus or, with the top bit, minus 1/8. */
struct Iq1 {
  static constexpr int kBits = 3;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) { return 8 * ((code & 3) - 1) + (code & 4 ? -1 : 1); }
};

/** Bytes that are the levels themselves. */
struct Signed8 {
  static constexpr int kBits = 8;
  static constexpr bool kLinear = false;
  static constexpr int value(int code) { return code < 128 ? code : code - 256; }
};

/** What LevelTiles::narrow adds to signed levels, so that they have seven bits and no sign. */
constexpr int kNarrowBias = 64;

/** The least and the greatest of all levels. */
template <class Levels>
constexpr int least_level() {
  int least = Levels::value(0);
  for (int code = 1; code < 1 << Levels::kBits; ++code) {
    least = Levels::value(code) < least ? Levels::value(code) : least;
  }
  return least;
}
template <class Levels>
constexpr int greatest_level() {
  int greatest = Levels::value(0);
  for (int code = 1; code < 1 << Levels::kBits; ++code) {
    greatest = Levels::value(code) > greatest ? Levels::value(code) : greatest;
  }
  return greatest;
}

/** value(code) of every code, repeated until the table has 16 entries or more. */
template <class Levels>
struct LevelTable {
  static constexpr int kSize = Levels::kBits < 4 ? 16 : 1 << Levels::kBits;
  alignas(64) int8_t level[kSize] = {};
  alignas(64) float number[kSize] = {};

  constexpr LevelTable() {
    for (int i = 0; i < kSize; ++i) {
      const int value = Levels::value(i & ((1 << Levels::kBits) - 1));
      level[i] = static_cast<int8_t>(value);
      number[i] = static_cast<float>(value);
    }
  }
};

/** The same, for codes of up to four bits, as bfloat16 numbers, which represent every level exactly: their
 * lower and upper bytes. */
template <class Levels>
struct Bfloat16Levels {
  alignas(16) uint8_t lower[16] = {}, upper[16] = {};
  constexpr Bfloat16Levels() {
    for (int i = 0; i < 16; ++i) {
      const int level = Levels::value(i & ((1 << Levels::kBits) - 1));
      const int magnitude = level < 0 ? -level : level;
      int exponent = 0;
      while (magnitude >> exponent > 1) ++exponent;
      const int bits = magnitude == 0 ? 0 : (127 + exponent) << 7 | ((magnitude << 7 >> exponent) & 127);
      lower[i] = static_cast<uint8_t>(bits);
      upper[i] = static_cast<uint8_t>(bits >> 8 | (level < 0 ? 128 : 0));
    }
  }
};

/** Levels of codes of up to four bits, with a number added, as bytes: value(code) + kBias. */
template <class Levels, int kBias>
struct ByteLevels {
  alignas(16) uint8_t byte[16] = {};
  constexpr ByteLevels() {
    for (int i = 0; i < 16; ++i) {
      byte[i] = static_cast<uint8_t>(Levels::value(i & ((1 << Levels::kBits) - 1)) + kBias);
    }
  }
};

namespace {
template <class Levels, int kBias>
constexpr ByteLevels<Levels, kBias> kByteLevels{};
template <class Levels>
constexpr LevelTable<Levels> kLevelTable{};
template <class Levels>
constexpr Bfloat16Levels<Levels> kBfloat16Levels{};
}  // namespace

}  // namespace gguf
