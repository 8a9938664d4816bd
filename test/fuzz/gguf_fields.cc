#include "test/fuzz/gguf_fields.h"

#include <algorithm>

namespace gguf::fuzz {

namespace {

constexpr size_t kMaxDepth = 100;
/** Elements of one array that are mapped one by one. */
constexpr size_t kMaxMapped = 64;

/** Bytes of a value of this type; 0 for strings, arrays and what does not exist. */
size_t width_of(uint64_t type) {
  constexpr size_t kWidths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof kWidths / sizeof *kWidths ? kWidths[type] : 0;
}
constexpr uint64_t kBool = 7, kString = 8, kArray = 9;

class Mapper {
 public:
  Mapper(const uint8_t* bytes, size_t n_bytes) : bytes_(bytes), n_bytes_(n_bytes) {}

  FieldMap run() {
    map_.complete = walk();
    map_.end = at_;
    return std::move(map_);
  }

 private:
  bool add(Role role, size_t width, size_t count, uint64_t* value = nullptr) {
    if (width != 0 && count > (n_bytes_ - at_) / width) return false;
    if (value != nullptr) *value = read_number(bytes_ + at_, width, map_.big_endian);
    map_.fields.push_back({role, at_, width, count});
    at_ += width * count;
    return true;
  }
  bool add_length(Role role, uint64_t* value) { return add(role, map_.length_bytes, 1, value); }
  bool add_text(Role length_role) {
    uint64_t n;
    return add_length(length_role, &n) && n <= n_bytes_ - at_ && add(Role::kText, 1, static_cast<size_t>(n));
  }

  bool walk() {
    if (n_bytes_ < 8) return false;
    at_ = 4;
    map_.big_endian = bytes_[4] == 0 && bytes_[5] == 0 && (bytes_[6] != 0 || bytes_[7] != 0);
    uint64_t version, n_tensors, n_keys;
    add(Role::kVersion, 4, 1, &version);
    if (version == 1) map_.length_bytes = 4;
    if (!add_length(Role::kTensorCount, &n_tensors) || !add_length(Role::kKeyCount, &n_keys)) return false;
    for (uint64_t i = 0; i < n_keys; i++) {
      const size_t begin = at_;
      uint64_t type;
      if (!add_text(Role::kNameLength) || !add(Role::kValueType, 4, 1, &type) || !walk_value(type, 0)) {
        return false;
      }
      map_.keys.push_back({begin, at_});
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
      const size_t begin = at_;
      uint64_t n_dims;
      if (!add_text(Role::kNameLength) || !add(Role::kDimCount, 4, 1, &n_dims) || n_dims > 64) return false;
      for (uint64_t dim = 0; dim < n_dims; dim++) {
        uint64_t ignored;
        if (!add_length(Role::kDim, &ignored)) return false;
      }
      if (!add(Role::kTensorType, 4, 1) || !add(Role::kTensorOffset, 8, 1)) return false;
      map_.tensors.push_back({begin, at_});
    }
    return true;
  }

  bool walk_value(uint64_t type, size_t depth) {
    if (type == kString) return add_text(Role::kStringLength);
    if (type != kArray) {
      const size_t width = width_of(type);
      return width != 0 && add(type == kBool ? Role::kBool : Role::kNumber, width, 1);
    }
    uint64_t element_type, length;
    if (depth == kMaxDepth || !add(Role::kElementType, 4, 1, &element_type) ||
        !add_length(Role::kArrayLength, &length)) {
      return false;
    }
    const size_t width = width_of(element_type);
    if (width != 0) {
      return length <= n_bytes_ &&
             add(element_type == kBool ? Role::kBool : Role::kNumber, width, static_cast<size_t>(length));
    }
    if (length > kMaxMapped || (element_type != kString && element_type != kArray)) return false;
    for (uint64_t i = 0; i < length; i++) {
      if (!walk_value(element_type, depth + 1)) return false;
    }
    return true;
  }

  const uint8_t* bytes_;
  size_t n_bytes_;
  size_t at_ = 0;
  FieldMap map_;
};

}  // namespace

FieldMap map_fields(const uint8_t* bytes, size_t n_bytes) {
  return Mapper(bytes, n_bytes).run();
}

uint64_t read_number(const uint8_t* bytes, size_t width, bool big_endian) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; i++) value = value << 8 | bytes[big_endian ? i : width - 1 - i];
  return value;
}

void write_number(uint8_t* bytes, size_t width, bool big_endian, uint64_t value) {
  for (size_t i = 0; i < width; i++) {
    bytes[big_endian ? width - 1 - i : i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

}  // namespace gguf::fuzz
