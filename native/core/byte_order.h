// Numbers from bytes in either byte order.
#pragma once

#include <cstdint>
#include <cstring>

namespace gguf {

enum class ByteOrder : uint8_t { kLittle, kBig };

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gguf-native is for little-endian systems: on this one it would give wrong numbers"
#endif

constexpr uint8_t swap_bytes(uint8_t value) {
  return value;
}
constexpr uint16_t swap_bytes(uint16_t value) {
  return static_cast<uint16_t>(value << 8 | value >> 8);
}
constexpr uint32_t swap_bytes(uint32_t value) {
  return value << 24 | (value & 0xFF00) << 8 | (value >> 8 & 0xFF00) | value >> 24;
}
constexpr uint64_t swap_bytes(uint64_t value) {
  return uint64_t{swap_bytes(static_cast<uint32_t>(value))} << 32 |
         swap_bytes(static_cast<uint32_t>(value >> 32));
}

/** The unsigned number at `bytes`, which need not be aligned. */
template <class T>
T load(const uint8_t* bytes, bool swap) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return swap ? swap_bytes(value) : value;
}

}  // namespace gguf
