#include "core/text.h"

#include <cstddef>
#include <cstdint>

namespace gguf {

CodePoint first_code_point(std::string_view bytes) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte_at(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {0, 0};
  const size_t n_bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes.size() < n_bytes) return {0, 0};
  uint32_t value = lead & (0x7F >> n_bytes);
  for (size_t i = 1; i < n_bytes; i++) {
    if ((byte_at(i) & 0xC0) != 0x80) return {0, 0};
    value = value << 6 | (byte_at(i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // for 2, 3 and 4 bytes
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[n_bytes] || surrogate || value > 0x10FFFF) return {0, 0};
  return {value, n_bytes};
}

namespace {

/** Names longer than this are cut. */
constexpr size_t kMaxShownBytes = 96;

/** Line separators, marks that turn the direction of text, and characters that are invisible. */
bool controls_layout(uint32_t code_point) {
  return (code_point >= 0x200B && code_point <= 0x200F) || (code_point >= 0x2028 && code_point <= 0x202E) ||
         (code_point >= 0x2060 && code_point <= 0x206F) || code_point == 0x061C || code_point == 0xFEFF;
}

/** Appends `prefix`, and `value` as `n_digits` hexadecimal digits. */
void append_hex(std::string& text, const char* prefix, int n_digits, uint32_t value) {
  text += prefix;
  while (n_digits-- > 0) text += "0123456789ABCDEF"[value >> (4 * n_digits) & 0xF];
}

}  // namespace

std::string quote_name(std::string_view name) {
  std::string text = "'";
  std::string_view rest = name;
  while (!rest.empty() && name.size() - rest.size() < kMaxShownBytes) {
    const CodePoint next = first_code_point(rest);
    const uint32_t value = next.value;
    if (next.n_bytes == 0) {
      append_hex(text, "\\x", 2, static_cast<uint8_t>(rest[0]));
      rest.remove_prefix(1);
      continue;
    }
    if (value == '\'' || value == '\\') {
      text += '\\';
      text += static_cast<char>(value);
    } else if (value == '\n') {
      text += "\\n";
    } else if (value < 0x20 || (value >= 0x7F && value < 0xA0)) {
      append_hex(text, "\\x", 2, value);
    } else if (controls_layout(value)) {
      append_hex(text, "\\u", 4, value);
    } else {
      text += rest.substr(0, next.n_bytes);
    }
    rest.remove_prefix(next.n_bytes);
  }
  if (rest.empty()) return text + '\'';
  return text + "...' (" + std::to_string(name.size()) + " bytes)";
}

}  // namespace gguf
