#include "core/hash_keys.h"

#include <chrono>
#include <exception>
#include <random>

#include "core/fold_multiply.h"

namespace gguf {

namespace {

HashKeys draw() {
  static const char place = 0;
  // Where the system has no random numbers, the time and where memory lies are still more than a prepared
  // file can know.
  uint64_t seed =
      static_cast<uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count()) ^
      reinterpret_cast<uintptr_t>(&place);
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
  HashKeys keys;
  keys.first = next(drawn[0]);
  keys.second = next(drawn[1]);
  keys.third = next(drawn[2]);
  return keys;
}

}  // namespace

const HashKeys& hash_keys() {
  static const HashKeys keys = draw();
  return keys;
}

}  // namespace gguf
