// The step of the hash of names.
#pragma once

#include <cstdint>

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

namespace gguf {

/** The high half of the 128-bit product ^ its low half. */
inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#elif defined(_MSC_VER) && defined(_M_X64)
  uint64_t high;
  const uint64_t low = _umul128(a, b, &high);
  return low ^ high;
#else
  const uint64_t a_low = a & 0xFFFFFFFF, a_high = a >> 32, b_low = b & 0xFFFFFFFF, b_high = b >> 32;
  const uint64_t low = a_low * b_low;
  const uint64_t middle = a_high * b_low + (low >> 32);  // cannot overflow, nor can the next
  const uint64_t middle2 = a_low * b_high + (middle & 0xFFFFFFFF);
  return (a_high * b_high + (middle >> 32) + (middle2 >> 32)) ^ (middle2 << 32 | (low & 0xFFFFFFFF));
#endif
}

}  // namespace gguf
