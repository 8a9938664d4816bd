// Writes GGUF files, good and broken, a field at a time: nothing is checked, counts and lengths are what the
// test says. `offset()` tells where the next field goes, which is what errors report.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/header.h"

namespace gguf::test {

/** What all lengths and numbers of a file look like. */
struct FileFormat {
  uint32_t version = 3;
  ByteOrder order = ByteOrder::kLittle;
};

class GgufWriter {
 public:
  explicit GgufWriter(FileFormat format = {}) : format_(format) {}

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  uint64_t offset() const { return bytes_.size(); }
  GgufWriter& raw(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  GgufWriter& u8(uint8_t value) { return number(value, 1); }
  GgufWriter& u16(uint16_t value) { return number(value, 2); }
  GgufWriter& u32(uint32_t value) { return number(value, 4); }
  GgufWriter& u64(uint64_t value) { return number(value, 8); }
  /** The low bytes of a number. */
  GgufWriter& number(uint64_t value, uint64_t n_bytes) {
    for (uint64_t i = 0; i < n_bytes; i++) {
      const uint64_t byte = format_.order == ByteOrder::kLittle ? i : n_bytes - 1 - i;
      bytes_.push_back(static_cast<uint8_t>(value >> (8 * byte)));
    }
    return *this;
  }
  /** A count or a length. */
  GgufWriter& length(uint64_t value) { return number(value, length_bytes()); }
  GgufWriter& string(std::string_view text) { return length(text.size()).raw(text); }
  GgufWriter& type(ValueType value) { return u32(static_cast<uint32_t>(value)); }

  /** What stands before the counts. */
  GgufWriter& start() { return raw("GGUF").u32(format_.version); }
  GgufWriter& header(uint64_t n_tensors, uint64_t n_keys) { return start().length(n_tensors).length(n_keys); }
  /** A key up to its value, which the caller writes. */
  GgufWriter& key(std::string_view name, ValueType value_type) { return string(name).type(value_type); }
  GgufWriter& alignment(uint32_t value) { return key("general.alignment", ValueType::kUint32).u32(value); }
  /** A key up to the elements of its array. */
  GgufWriter& array_key(std::string_view name, ValueType element_type, uint64_t count) {
    return key(name, ValueType::kArray).array(element_type, count);
  }
  /** What stands before the elements of an array. */
  GgufWriter& array(ValueType element_type, uint64_t count) { return type(element_type).length(count); }

  GgufWriter& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t tensor_type,
                     uint64_t data_offset) {
    string(name).u32(static_cast<uint32_t>(shape.size()));
    for (const uint64_t dim : shape) length(dim);
    return u32(tensor_type).u64(data_offset);
  }
  /** Zeros up to a multiple of `alignment`. */
  GgufWriter& pad(uint64_t alignment = 32) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(0);
    return *this;
  }
  GgufWriter& zeros(uint64_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }

  uint32_t length_bytes() const { return format_.version == 1 ? 4 : 8; }

 private:
  FileFormat format_;
  std::vector<uint8_t> bytes_;
};

}  // namespace gguf::test
