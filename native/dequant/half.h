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

/** binary32 to binary16, to nearest even; a NaN keeps its sign and nothing else. Without branches, for loops
 * over many. */
inline uint16_t float_to_half(float x) {
  const uint32_t bits = bits_of_float(x);
  const auto magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
  const int32_t rounded = (magnitude - ((127 - 15) << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14 the result is a multiple of 2^-24: adding 0.5 makes the addition round there, to nearest
  // even.
  const float sum = float_of_bits(static_cast<uint32_t>(magnitude)) + 0.5f;
  const auto subnormal = static_cast<int32_t>(bits_of_float(sum) - bits_of_float(0.5f));
  int32_t half = magnitude < 0x38800000 ? subnormal : rounded;
  half = magnitude >= 0x477ff000 ? 0x7c00 : half;  // 65520 and above round to infinity
  half = magnitude > 0x7f800000 ? 0x7e00 : half;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) | static_cast<uint32_t>(half));
}

/** bfloat16 is the upper half of a binary32. */
inline float bfloat16_to_float(uint16_t bits) {
  return float_of_bits(static_cast<uint32_t>(bits) << 16);
}

/** binary32 to bfloat16, to nearest even; a NaN stays a NaN. */
inline uint16_t float_to_bfloat16(float x) {
  const uint32_t bits = bits_of_float(x);
  const uint32_t quiet = (bits >> 16) | 0x40;
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool is_nan = static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000;
  return static_cast<uint16_t>(is_nan ? quiet : rounded);
}

}  // namespace
}  // namespace gguf
