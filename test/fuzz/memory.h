// What the targets of the kernels share: memory that ends where an allocation ends, its content, and the
// comparison of numbers.
#pragma once

#include <stdlib.h>  // posix_memalign

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "test/fuzz/random.h"
#include "test/fuzz/require.h"

namespace gguf::fuzz {

constexpr size_t kLine = 64;
constexpr uint8_t kUntouched = 0xa5;

/** `n_bytes` that start `shift` bytes after a line, and end where the allocation ends. */
class Memory {
 public:
  Memory(size_t shift, size_t n_bytes) : shift_(shift) {
    void* start = nullptr;
    FUZZ_REQUIRE(posix_memalign(&start, kLine, shift + n_bytes + (shift + n_bytes == 0)) == 0);
    start_ = static_cast<uint8_t*>(start);
    std::memset(start_, kUntouched, shift);
  }
  ~Memory() { free(start_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint8_t* data() const { return start_ + shift_; }
  bool untouched_before() const {
    for (size_t i = 0; i < shift_; i++) {
      if (start_[i] != kUntouched) return false;
    }
    return true;
  }

 private:
  uint8_t* start_;
  size_t shift_;
};

template <class Bits>
Bits bits_at(const uint8_t* bytes, size_t i) {
  Bits bits;
  std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
  return bits;
}

/** `infinity`: the bits of it. Which NaN a NaN is, is not promised. */
template <class Bits>
bool same_numbers(const uint8_t* a, const uint8_t* b, size_t n, Bits infinity) {
  const Bits magnitude = static_cast<Bits>(~Bits{0} >> 1);
  for (size_t i = 0; i < n; i++) {
    const Bits x = bits_at<Bits>(a, i), y = bits_at<Bits>(b, i);
    if (x != y && !((x & magnitude) > infinity && (y & magnitude) > infinity)) return false;
  }
  return true;
}

/** The bytes given, then random ones. */
inline void fill(uint8_t* dst, size_t n_bytes, const uint8_t* given, size_t n_given, Random& random) {
  const size_t n_first = n_given < n_bytes ? n_given : n_bytes;
  if (n_first > 0) std::memcpy(dst, given, n_first);
  for (size_t i = n_first; i < n_bytes; i += 8) {
    const uint64_t bits = random.bits();
    std::memcpy(dst + i, &bits, n_bytes - i < 8 ? n_bytes - i : 8);
  }
}

}  // namespace gguf::fuzz
