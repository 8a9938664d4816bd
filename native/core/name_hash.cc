// A multiply-and-fold hash. Sixteen bytes a step:
//
//   state = fold((a ^ key0 ^ state) * (b ^ key1))       a, b: the next two words; fold: high half ^ low half
//
// and a last step with the length, so that a name and the same name followed by NULs differ. Both factors
// hold a secret key: without it nobody can choose words that make one of them zero, which would erase the
// state.
#include "core/name_hash.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <random>

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif

namespace gguf {

namespace {

/** The high half of the 128-bit product ^ its low half. */
uint64_t fold_multiply(uint64_t a, uint64_t b) {
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

struct Keys {
  uint64_t first, second, third;

  Keys() {
    // Where the system has no random numbers, the time and where memory lies (the address of this object, of
    // code) are still more than a prepared file can know.
    uint64_t seed =
        static_cast<uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count()) ^
        reinterpret_cast<uintptr_t>(this);
    uint64_t drawn[3] = {};
    try {
      std::random_device random;
      for (uint64_t& word : drawn) word = uint64_t{random()} << 32 | random();
    } catch (const std::exception&) {
    }
    const auto next = [&seed](uint64_t word) {
      seed += 0x9E3779B97F4A7C15;  // the golden ratio: an odd number without pattern
      return fold_multiply(seed ^ word, 0xD6E8FEB86659FD93) ^ word;
    };
    first = next(drawn[0]);
    second = next(drawn[1]);
    third = next(drawn[2]);
  }
};

uint64_t word_at(const char* bytes, size_t n_bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, n_bytes);
  return word;
}

}  // namespace

uint32_t hash_name(std::string_view name) {
  static const Keys keys;
  const char* bytes = name.data();
  size_t n_left = name.size();
  uint64_t state = keys.third;
  for (; n_left > 16; bytes += 16, n_left -= 16) {
    state = fold_multiply(word_at(bytes, 8) ^ keys.first ^ state, word_at(bytes + 8, 8) ^ keys.second);
  }
  uint64_t a = 0, b = 0;  // the last 0 to 16 bytes
  if (n_left > 8) {
    a = word_at(bytes, 8);
    b = word_at(bytes + 8, n_left - 8);
  } else if (n_left > 0) {
    a = word_at(bytes, n_left);
  }
  state = fold_multiply(a ^ keys.first ^ state, b ^ keys.second);
  state = fold_multiply(state ^ keys.second, name.size() ^ keys.third);
  return static_cast<uint32_t>(state);
}

}  // namespace gguf
