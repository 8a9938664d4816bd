// Text for error details. Names come from the file and may hold anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gguf {

/**
 * The name in single quotes, as in JavaScript's own messages, and safe to show in a terminal or a log: bytes
 * that are not UTF-8, and what controls a terminal or the direction of text, are escaped (\n, \x1B, \u202E);
 * a long name is cut, and followed by its size.
 */
std::string quote_name(std::string_view name);

struct CodePoint {
  uint32_t value;
  size_t n_bytes;  // 0: the bytes are not UTF-8
};

/** The code point that `bytes`, not empty, starts with. */
CodePoint first_code_point(std::string_view bytes);

}  // namespace gguf
