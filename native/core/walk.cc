#include "core/walk.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/checked.h"
#include "core/value_reader.h"

namespace gguf {

namespace {

/** Strings that are stepped over between two looks at how much memory they took: each may be on a page of its
   own, so these are 16 MiB at most. */
constexpr uint64_t kStringsPerStep = uint64_t{1} << 12;

/** The fewest bytes that a value of this type takes in an array. */
uint64_t smallest_element(ValueType type, const Cursor& in) {
  if (type == ValueType::kString) return in.length_bytes();
  if (type == ValueType::kArray) return sizeof(uint32_t) + in.length_bytes();
  return fixed_size(type);
}

/** The first byte that is neither 0 nor 1; `count` where there is none. */
uint64_t find_bad_bool(const uint8_t* bytes, uint64_t count) {
  uint8_t all = 0;
  for (uint64_t i = 0; i < count; i++)
    all |= bytes[i];  // compilers turn this into vector code, unlike a search
  if (all <= 1) return count;
  return static_cast<uint64_t>(std::find_if(bytes, bytes + count, [](uint8_t byte) { return byte > 1; }) -
                               bytes);
}

bool bad_bool(Scan& scan, uint64_t offset, uint8_t byte) {
  return scan.invalid(offset, "a bool is " + std::to_string(byte) + ", neither 0 nor 1");
}

bool deliver_string(Scan& scan, ValueVisitor& visitor, const uint8_t* bytes, uint64_t n_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), to_size(n_bytes));
  return visitor.string(text) || scan.stop();
}

bool walk_strings(Scan& scan, uint64_t count, ValueVisitor* visitor) {
  if (visitor == nullptr) {
    for (uint64_t first = 0; first < count; first += kStringsPerStep) {
      uint64_t skipped;
      if (!scan.in.skip_strings(std::min(count - first, kStringsPerStep), skipped)) {
        return scan.short_of_string("string " + std::to_string(first + skipped));
      }
      scan.let_go();
    }
    return true;
  }
  for (uint64_t i = 0; i < count; i++) {
    const uint8_t* bytes;
    uint64_t n_bytes;
    if (!scan.in.take_string(bytes, n_bytes)) return scan.short_of_string("string " + std::to_string(i));
    if (!deliver_string(scan, *visitor, bytes, n_bytes)) return false;
  }
  return true;
}

bool walk_bools(Scan& scan, uint64_t count, ValueVisitor* visitor) {
  const uint64_t start = scan.in.offset();
  const uint8_t* bytes;
  if (!scan.in.take(count, bytes))
    return scan.short_of(start, "an array of " + std::to_string(count) + " bools");
  const uint64_t bad = find_bad_bool(bytes, count);
  if (bad < count) return bad_bool(scan, start + bad, bytes[bad]);
  return visitor == nullptr || count == 0 || visitor->booleans(bytes, count) || scan.stop();
}

bool walk_numbers(Scan& scan, ValueType type, uint64_t count, ValueVisitor* visitor) {
  const uint64_t start = scan.in.offset();
  const uint8_t* bytes;
  // Cannot overflow: read_array_head has found that so many bytes remain.
  if (!scan.in.take(count * fixed_size(type), bytes)) {
    return scan.short_of(start, "an array of " + std::to_string(count) + " " + value_type_name(type));
  }
  return visitor == nullptr || count == 0 || visitor->numbers(type, bytes, count, scan.in.byte_order()) ||
         scan.stop();
}

template <class T>
bool walk_number(Scan& scan, ValueType type, ValueVisitor* visitor) {
  const uint64_t start = scan.in.offset();
  T value;
  if (!scan.in.read(value))
    return scan.short_of(start, std::string("the value, a ") + value_type_name(type) + ",");
  return visitor == nullptr || visitor->number(type, &value) || scan.stop();
}

bool walk_bool(Scan& scan, ValueVisitor* visitor) {
  const uint64_t start = scan.in.offset();
  uint8_t value;
  if (!scan.in.read(value)) return scan.short_of(start, "the value, a bool,");
  if (value > 1) return bad_bool(scan, start, value);
  return visitor == nullptr || visitor->boolean(value != 0) || scan.stop();
}

bool walk_string(Scan& scan, ValueVisitor* visitor) {
  const uint8_t* bytes;
  uint64_t n_bytes;
  if (!scan.in.take_string(bytes, n_bytes)) return scan.short_of_string("the value, a string");
  return visitor == nullptr || deliver_string(scan, *visitor, bytes, n_bytes);
}

}  // namespace

bool read_value_type(Scan& scan, const char* role, ValueType& type) {
  const uint64_t start = scan.in.offset();
  uint32_t number;
  if (!scan.in.read(number)) return scan.short_of(start, std::string("the ") + role);
  type = static_cast<ValueType>(number);
  if (value_type_name(type) != nullptr) return true;
  return scan.invalid(
      start, std::string("the ") + role + " is " + std::to_string(number) + ", which does not exist");
}

bool read_array_head(Scan& scan, ValueType& element_type, uint64_t& count) {
  if (!read_value_type(scan, "array element type", element_type)) return false;
  const uint64_t start = scan.in.offset();
  if (!scan.in.read_length(count)) return scan.short_of(start, "the length of an array");
  if (count > scan.in.remaining() / smallest_element(element_type, scan.in)) {
    return scan.truncated(start, "an array of " + std::to_string(count) + " " +
                                     value_type_name(element_type) + " does not fit in the " +
                                     std::to_string(scan.in.remaining()) + " bytes that are left");
  }
  const bool walked = element_type == ValueType::kString || element_type == ValueType::kArray ||
                      element_type == ValueType::kBool;
  if (!walked) return true;
  if (count > scan.walked_elements_left) {
    return scan.invalid(start, "with this array of " + std::to_string(count) + " " +
                                   value_type_name(element_type) + " there are more than " +
                                   std::to_string(kMaxWalkedElements) +
                                   " strings, bools and arrays in arrays");
  }
  scan.walked_elements_left -= count;
  return true;
}

bool walk_value(Scan& scan, ValueType type, ValueVisitor* visitor) {
  switch (type) {
    case ValueType::kBool:
      return walk_bool(scan, visitor);
    case ValueType::kString:
      return walk_string(scan, visitor);
    default:
      break;
  }
  switch (fixed_size(type)) {
    case 1:
      return walk_number<uint8_t>(scan, type, visitor);
    case 2:
      return walk_number<uint16_t>(scan, type, visitor);
    case 4:
      return walk_number<uint32_t>(scan, type, visitor);
    default:
      return walk_number<uint64_t>(scan, type, visitor);
  }
}

bool walk_elements(Scan& scan, ValueType element_type, uint64_t count, ValueVisitor* visitor) {
  struct Level {
    ValueType element_type;
    uint64_t n_left;
  };
  Level levels[kMaxArrayDepth] = {{element_type, count}};
  uint32_t depth = 1;
  for (;;) {
    Level& level = levels[depth - 1];
    bool ok = true;
    switch (level.element_type) {
      case ValueType::kArray:
        if (level.n_left == 0) break;
        level.n_left--;
        if (depth == kMaxArrayDepth) {
          return scan.invalid(scan.in.offset(),
                              "arrays lie in arrays more than " + std::to_string(kMaxArrayDepth) + " deep");
        }
        levels[depth] = {};
        if (!read_array_head(scan, levels[depth].element_type, levels[depth].n_left)) return false;
        if (visitor != nullptr && !visitor->begin_array(levels[depth].element_type, levels[depth].n_left)) {
          return scan.stop();
        }
        depth++;
        continue;
      case ValueType::kString:
        ok = walk_strings(scan, level.n_left, visitor);
        break;
      case ValueType::kBool:
        ok = walk_bools(scan, level.n_left, visitor);
        break;
      default:
        ok = walk_numbers(scan, level.element_type, level.n_left, visitor);
        break;
    }
    if (!ok) return false;
    scan.let_go();
    if (--depth == 0) return true;
    if (visitor != nullptr && !visitor->end_array()) return scan.stop();
  }
}

}  // namespace gguf
