#include "core/value_reader.h"

#include <cstring>
#include <exception>

#include "core/checked.h"
#include "core/walk.h"

namespace gguf {

namespace {

template <class T>
void copy_swapped(const uint8_t* bytes, uint64_t count, void* dst) {
  uint8_t* at = static_cast<uint8_t*>(dst);
  for (uint64_t i = 0; i < count; i++, at += sizeof(T)) {
    const T value = load<T>(bytes + i * sizeof(T), true);
    std::memcpy(at, &value, sizeof value);
  }
}

/** Walks over the value of `entry`; the cursor of `scan` is at entry.begin and ends at entry.end. */
bool walk_entry(Scan& scan, const KeyValue& entry, ValueVisitor& visitor) {
  if (entry.type != ValueType::kArray) {
    if (!walk_value(scan, entry.type, &visitor)) return false;
  } else {
    if (!visitor.begin_array(entry.element_type, entry.length)) return scan.stop();
    if (!walk_elements(scan, entry.element_type, entry.length, &visitor)) return false;
    if (!visitor.end_array()) return scan.stop();
  }
  if (scan.in.remaining() == 0) return true;
  return scan.invalid(scan.in.offset(), "the value ends before byte " + std::to_string(entry.end));
}

}  // namespace

void copy_numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order, void* dst) {
  const size_t size = fixed_size(type);
  if (count == 0) return;
  if (order == ByteOrder::kBig) {
    if (size == 2) return copy_swapped<uint16_t>(bytes, count, dst);
    if (size == 4) return copy_swapped<uint32_t>(bytes, count, dst);
    if (size == 8) return copy_swapped<uint64_t>(bytes, count, dst);
  }
  std::memcpy(dst, bytes, to_size(count * size));
}

Status read_value(const KeyValue& entry, const Header& header, const uint8_t* bytes, uint64_t base,
                  uint64_t n_bytes, ValueVisitor& visitor) {
  if (entry.begin < base || entry.end < entry.begin || entry.end - base > n_bytes) {
    return Error{ErrorCode::kTruncated,
                 "the value of a key, bytes " + std::to_string(entry.begin) + " to " +
                     std::to_string(entry.end) + ", is not there",
                 entry.begin};
  }
  Scan scan(Cursor(bytes + (entry.begin - base), entry.begin, entry.end - entry.begin, entry.end));
  scan.in.set_format(header.version, header.byte_order);
  scan.kind = "key";
  scan.name = entry.key;
  if (walk_entry(scan, entry, visitor) || scan.stopped) return std::nullopt;
  // The header was parsed from valid bytes: bytes that are not valid now have changed since.
  Error& error = scan.error;
  error.code = ErrorCode::kInvalid;
  error.detail += " (the file has changed since it was opened)";
  return std::move(error);
}

}  // namespace gguf
