// Text for error details. Names come from the file and may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace gguf {

/**
 * The name in single quotes, as in the messages that JavaScript makes, and fit for a terminal and a log: what
 * is not UTF-8 and whatever controls a terminal or the direction of text is escaped (\n, \x1B, \u202E), and a
 * long name is cut, with its size behind it.
 */
std::string quote_name(std::string_view name);

/** What the system says about an error number, without a full stop. */
std::string system_message(int system_error);

}  // namespace gguf
