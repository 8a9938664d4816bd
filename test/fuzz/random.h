// Random numbers for mutators and generators: small, fast, and the same for the same seed everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) {}

  uint64_t bits() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1D;
  }
  /** 0 to `bound` - 1; `bound` is not 0. */
  size_t below(size_t bound) { return static_cast<size_t>((bits() >> 33) % bound); }
  /** True once in `n` times. */
  bool one_in(size_t n) { return below(n) == 0; }

  template <class T, size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  uint64_t state_;  // never 0: no seed leads there but one, and that is as good as never
};

}  // namespace gguf::fuzz
