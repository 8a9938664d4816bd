// The keys, back to back:
//
//   name: length, bytes | value type: u32 | value
//
// A value is a number, a bool (one byte), a string (length, bytes) or an array (element type: u32, count,
// elements).
#include <algorithm>
#include <string>

#include "core/checked.h"
#include "core/parse_steps.h"
#include "core/walk.h"

namespace gguf {

namespace {

/** The value of general.alignment: a u32, a power of two. */
bool parse_alignment(Scan& scan, uint64_t type_offset, const KeyValue& entry, Header& header) {
  if (entry.type != ValueType::kUint32) {
    return scan.invalid(
        type_offset, std::string("the alignment must be a uint32, but is a ") + value_type_name(entry.type));
  }
  uint32_t alignment;
  if (!scan.in.read(alignment)) return scan.short_of(entry.begin, "the alignment");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return scan.invalid(entry.begin,
                        "the alignment is " + std::to_string(alignment) + ", not a power of two");
  }
  header.alignment = alignment;
  return true;
}

bool parse_key(Scan& scan, uint32_t index, Header& header) {
  const uint64_t start = scan.in.offset();
  KeyValue entry = {};
  if (!parse_name(scan, "key", index, 1, kMaxKeyBytes, header.names, header.replaced_keys, entry.key))
    return false;
  const auto name_at = [&header](uint32_t position) { return header.keys[position].key; };
  if (const auto first = header.key_index.insert(entry.key, index, name_at)) {
    return scan.invalid(start, "there are two keys of this name, number " + std::to_string(*first) +
                                   " and number " + std::to_string(index));
  }

  const uint64_t type_offset = scan.in.offset();
  if (!read_value_type(scan, "value type", entry.type)) return false;
  entry.element_type = entry.type;
  entry.length = 1;
  if (entry.type == ValueType::kArray && !read_array_head(scan, entry.element_type, entry.length))
    return false;
  entry.begin = scan.in.offset();
  if (entry.key == kAlignmentKey) {
    if (!parse_alignment(scan, type_offset, entry, header)) return false;
  } else if (entry.type == ValueType::kArray) {
    if (!walk_elements(scan, entry.element_type, entry.length, nullptr)) return false;
  } else {
    if (!walk_value(scan, entry.type, nullptr)) return false;
  }
  entry.end = scan.in.offset();
  header.keys.push_back(entry);
  return true;
}

}  // namespace

bool parse_metadata(Scan& scan, uint64_t n_keys, Header& header) {
  const uint64_t n_expected = std::min(n_keys, kMaxTrustedEntries);
  header.keys.reserve(to_size(n_expected));
  header.key_index.reserve(n_expected);
  for (uint64_t i = 0; i < n_keys; i++) {
    if (!parse_key(scan, static_cast<uint32_t>(i), header)) return false;
    scan.let_go();
  }
  scan.kind = "";
  return true;
}

}  // namespace gguf
