// The secret keys of the hash of names.
#pragma once

#include <cstdint>

namespace gguf {

struct HashKeys {
  uint64_t first, second, third;
};

/** Drawn at random once for each process: see name_hash.h. */
const HashKeys& hash_keys();

}  // namespace gguf
