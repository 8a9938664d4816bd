#include "core/text.h"

#include <cstddef>
#include <cstdint>

namespace gguf {

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

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

bool decodes_to_replacement(std::string_view bytes) {
  while (!bytes.empty()) {
    const CodePoint next = first_code_point(bytes);
    if (next.n_bytes == 0 || next.value == 0xFFFD) return true;
    bytes.remove_prefix(next.n_bytes);
  }
  return false;
}

namespace {

/** Names longer than this are cut. */
constexpr size_t kMaxShownBytes = 96;

/** Line separators, marks that turn the direction of text, and what is invisible: test/cli/cli.test.ts
 * compares with Unicode. */
bool controls_layout(uint32_t code_point) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kRanges[] = {
      {0xAD, 0xAD},       {0x34F, 0x34F},     {0x61C, 0x61C},   {0x115F, 0x1160}, {0x17B4, 0x17B5},
      {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
      {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3},
      {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
  };
  for (const Range& range : kRanges) {
    if (code_point >= range.first && code_point <= range.last) return true;
  }
  return false;
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
      const bool is_long = value > 0xFFFF;
      append_hex(text, is_long ? "\\u{" : "\\u", is_long ? 5 : 4, value);
      if (is_long) text += '}';
    } else {
      text += rest.substr(0, next.n_bytes);
    }
    rest.remove_prefix(next.n_bytes);
  }
  if (rest.empty()) return text + '\'';
  return text + "...' (" + std::to_string(name.size()) + " bytes)";
}

}  // namespace gguf
