// binary16 and bfloat16 to binary32 and back, in integer arithmetic: for instruction sets without
// conversions.
//
// In an unnamed namespace, because files of different instruction sets include it.
#pragma once

#include <cstdint>
#include <cstring>

namespace gguf {
namespace {

inline float float_of_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline uint32_t bits_of_float(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

/** binary16 (1 sign, 5 exponent, 10 fraction bits) to binary32, exactly. */
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;  // fraction and exponent in place
  if (magnitude >= 0x7c00u << 13) return float_of_bits(sign | 0x7f800000u | magnitude);  // infinity, NaN
  if (magnitude >= 0x0400u << 13) return float_of_bits(sign | (magnitude + ((127 - 15) << 23)));
  // Subnormal: fraction * 2^-24, which binary32 holds as a normal number.
  const float value = static_cast<float>(half & 0x3ff) * 0x1p-24f;
  return float_of_bits(sign | bits_of_float(value));
}

/** binary32 to binary16, to nearest even; a NaN stays a NaN. */
inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of_float(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000u)
    return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is a multiple of 2^-24: adding 0.5 makes the addition round there, to nearest
    // even.
    const float sum = float_of_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of_float(sum) - bits_of_float(0.5f)));
  }
  const uint32_t rounded = magnitude - ((127 - 15) << 23) + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

/** bfloat16 is the upper half of a binary32. */
inline float bfloat16_to_float(uint16_t bits) {
  return float_of_bits(static_cast<uint32_t>(bits) << 16);
}

/** binary32 to bfloat16, to nearest even; a NaN stays a NaN. */
inline uint16_t float_to_bfloat16(float x) {
  const uint32_t bits = bits_of_float(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40);  // quiet
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace
}  // namespace gguf
