// Text for error details. Names come from the file and may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace gguf {

/**
 * The name in single quotes, as in JavaScript's own messages, and safe to show in a terminal or a log: bytes
 * that are not UTF-8, and what controls a terminal or the direction of text, are escaped (\n, \x1B, \u202E);
 * a long name is cut, and followed by its size.
 */
std::string quote_name(std::string_view name);

/** What the system says about an error number, without a full stop. */
std::string system_message(int system_error);

}  // namespace gguf
