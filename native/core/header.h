// What a GGUF header says, indexed but not decoded: where each metadata value starts and ends, and where each
// tensor lies. Holds no pointer into the file: names are copied, so it stays valid whatever happens to the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/byte_order.h"
#include "core/name_index.h"
#include "core/name_store.h"

namespace gguf {

/** Numbers as stored in the file. */
enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

/** Bytes of one value; 0 for strings and arrays, whose size is in the file, and for what is no value type. */
size_t fixed_size(ValueType type);
/** "uint32", "string" ...; nullptr for a number that is no value type. */
const char* value_type_name(ValueType type);

struct KeyValue {
  std::string_view key;
  ValueType type;
  ValueType element_type;  // of an array; otherwise the same as type
  uint64_t length;         // elements of an array; otherwise 1
  uint64_t begin;  // file offset of the value: of a string's length field, of an array's first element
  uint64_t end;    // one past its last byte
};

struct TensorInfo {
  static constexpr uint64_t kUnknownSize = UINT64_MAX;
  static constexpr int kMaxDims = 4;

  std::string_view name;
  uint32_t type;             // the number in the file, known or not
  uint32_t n_dims;           // 0 to 4; with 0 the tensor is one element
  uint64_t shape[kMaxDims];  // shape[0] is contiguous; 1 past n_dims
  uint64_t n_elements;       // their product: below 2^63
  uint64_t n_bytes;          // below 2^63, or kUnknownSize for an unknown type
  uint64_t offset;           // of its first byte, from the start of the file
  uint64_t entry_offset;     // where the directory describes it

  /** The product of all but shape[0]. Rows without elements can be more than 64 bits can count: UINT64_MAX
   * then. */
  uint64_t n_rows() const;
};

struct Header {
  uint32_t version = 0;
  ByteOrder byte_order = ByteOrder::kLittle;
  uint64_t alignment = 32;
  uint64_t data_offset =
      0;  // where tensor data starts; past the end of a file that has none and is not padded
  uint64_t file_size = 0;
  std::vector<KeyValue> keys;       // in file order
  std::vector<TensorInfo> tensors;  // in file order
  NameIndex key_index;              // positions in `keys`
  NameIndex tensor_index;           // positions in `tensors`
  NameStore names;                  // what key and name point into

  // Positions of names that, decoded, hold U+FFFD: for bytes that are not UTF-8, or because they are its
  // UTF-8. Only two of these can look the same, so only these need other names.
  std::vector<uint32_t> replaced_keys;
  std::vector<uint32_t> replaced_tensors;

  /** The key of this name; nullptr where there is none. */
  const KeyValue* find_key(std::string_view key) const;
  /** The tensor of this name; nullptr where there is none. */
  const TensorInfo* find_tensor(std::string_view name) const;
};

}  // namespace gguf
