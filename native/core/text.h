// Text for error details. Names come from the file and may hold anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gguf {

/**
 * The name in single quotes, as in JavaScript's own messages, and safe to show in a terminal or a log: bytes
 * that are not UTF-8, what controls a terminal or the direction of text, and what is invisible, are escaped
 * (\n, \x1B, \u202E, \u{E0041}); a long name is cut, and followed by its size.
 */
std::string quote_name(std::string_view name);

/** 6282208 as "6,282,208". */
std::string grouped(uint64_t number);

struct CodePoint {
  uint32_t value;
  size_t n_bytes;  // 0: the bytes are not UTF-8
};

/** The code point that `bytes`, not empty, starts with. */
CodePoint first_code_point(std::string_view bytes);

/** Whether `bytes`, decoded as UTF-8, hold U+FFFD: for what is not UTF-8, or as a character of their own. */
bool decodes_to_replacement(std::string_view bytes);

}  // namespace gguf
