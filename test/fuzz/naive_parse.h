// The rules of the format once more, as plainly as they can be said: no cursor, no limits on time or memory,
// 128-bit sums, sets for names. The parser under test has to accept what this accepts, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gguf::fuzz {

struct NaiveKey {
  uint64_t begin, end;
};
struct NaiveTensor {
  uint64_t offset, n_elements;
};
struct NaiveFile {
  bool good = false;
  std::vector<NaiveKey> keys;
  std::vector<NaiveTensor> tensors;
};

NaiveFile naive_parse(const uint8_t* bytes, size_t n_bytes, bool partial);

}  // namespace gguf::fuzz
