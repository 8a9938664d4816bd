// Sums and products of numbers from a file, which may not wrap, and lengths that may not be cut short.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/out_of_memory.h"

namespace gguf {

/** `a * b` in `product`; false, and no change, where it is `limit` or more. */
[[nodiscard]] inline bool multiply_below(uint64_t limit, uint64_t a, uint64_t b, uint64_t& product) {
  if (b != 0 && a > (limit - 1) / b) return false;
  product = a * b;
  return true;
}

/** `a + b` in `sum`; false, and no change, where it does not fit in 64 bits. */
[[nodiscard]] inline bool add(uint64_t a, uint64_t b, uint64_t& sum) {
  if (a > UINT64_MAX - b) return false;
  sum = a + b;
  return true;
}

/** `value` rounded up to a multiple of `power`, a power of two, in `rounded`; false where it does not fit. */
[[nodiscard]] inline bool round_up(uint64_t value, uint64_t power, uint64_t& rounded) {
  if (!add(value, power - 1, rounded)) return false;
  rounded &= ~(power - 1);
  return true;
}

/**
 * A number of bytes or elements of 64 bits as a size in memory. Out of memory where memory cannot have so
 * many: on a 32-bit system, from 4 GiB on. A cast would cut the number short there, and what follows would
 * read or write past a buffer that is too small.
 */
[[nodiscard]] inline size_t to_size(uint64_t n) {
  if constexpr (sizeof(size_t) < sizeof(uint64_t)) {
    if (n > SIZE_MAX) out_of_memory();
  }
  return static_cast<size_t>(n);
}

}  // namespace gguf
