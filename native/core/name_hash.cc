// A multiply-and-fold hash. Sixteen bytes a step:
//
//   state = fold((a ^ key0 ^ state) * (b ^ key1))       a, b: the next two words; fold: high half ^ low half
//
// and a last step with the length, so that a name and the same name followed by NULs differ. Both factors
// hold a secret key: without it nobody can choose words that make one of them zero, which would erase the
// state.
#include "core/name_hash.h"

#include <cstring>

#include "core/fold_multiply.h"
#include "core/hash_keys.h"

namespace gguf {

namespace {

uint64_t word_at(const char* bytes, size_t n_bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, n_bytes);
  return word;
}

}  // namespace

uint32_t hash_name(std::string_view name) {
  const HashKeys& keys = hash_keys();
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
