// Where the fields of a GGUF header are: what a mutator has to know to change one of them rather than some
// bytes. Forgiving: walks over a broken file as far as it can be followed. Shares no code with the parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gguf::fuzz {

enum class Role : uint8_t {
  kVersion,
  kTensorCount,
  kKeyCount,
  kNameLength,  // of a key or tensor
  kStringLength,
  kText,  // bytes of a name or a string
  kValueType,
  kElementType,
  kArrayLength,
  kNumber,
  kBool,
  kDimCount,
  kDim,
  kTensorType,
  kTensorOffset,
};

/** `count` numbers of `width` bytes, back to back; text is numbers of one byte. */
struct Field {
  Role role;
  size_t offset;
  size_t width;
  size_t count;

  size_t n_bytes() const { return width * count; }
};

/** From the length of its name to the end of its value or offset. */
struct Entry {
  size_t begin, end;
};

struct FieldMap {
  bool big_endian = false;
  size_t length_bytes = 8;
  std::vector<Field> fields;
  std::vector<Entry> keys;
  std::vector<Entry> tensors;
  size_t end = 0;         // of what could be followed
  bool complete = false;  // all entries were there
};

FieldMap map_fields(const uint8_t* bytes, size_t n_bytes);

uint64_t read_number(const uint8_t* bytes, size_t width, bool big_endian);
void write_number(uint8_t* bytes, size_t width, bool big_endian, uint64_t value);

}  // namespace gguf::fuzz
