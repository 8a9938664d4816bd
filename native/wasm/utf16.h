// Text as JavaScript counts it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace gguf {

/** Instead of the length of text that is not UTF-8. */
constexpr uint32_t kNotUtf8 = UINT32_MAX;

/** The UTF-16 code units of text. */
inline uint32_t utf16_units(std::string_view text) {
  uint32_t n = 0;
  while (!text.empty()) {
    uint64_t eight = UINT64_MAX;
    if (text.size() >= sizeof eight) std::memcpy(&eight, text.data(), sizeof eight);
    if ((eight & 0x8080808080808080) == 0) {
      n += sizeof eight;
      text.remove_prefix(sizeof eight);
      continue;
    }
    const CodePoint next = first_code_point(text);
    if (next.n_bytes == 0) return kNotUtf8;
    n += next.value < 0x10000 ? 1 : 2;
    text.remove_prefix(next.n_bytes);
  }
  return n;
}

/** Adds the size of a string as src/backend/wasm/texts.ts takes it: its bytes, its UTF-16 code units. */
inline void add_sizes(std::string_view text, std::vector<uint32_t>& sizes) {
  sizes.push_back(static_cast<uint32_t>(text.size()));
  sizes.push_back(utf16_units(text));
}

}  // namespace gguf
