// All of parsing that has to do with exceptions.
#include "core/out_of_memory.h"

#include <new>
#include <stdexcept>

#include "core/parse.h"

namespace gguf {

void out_of_memory() {
  throw std::bad_alloc();
}

ParseOutcome parse_header(const uint8_t* bytes, uint64_t n_bytes, uint64_t file_size, TypeSizeOf type_size,
                          ParseOptions options) noexcept {
  try {
    return parse_header_or_throw(bytes, n_bytes, file_size, type_size, options);
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // a vector that cannot be so long
  }
  return {no_memory(), false};
}

}  // namespace gguf
