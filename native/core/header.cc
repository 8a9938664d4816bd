#include "core/header.h"

namespace gguf {

namespace {

struct ValueTypeFacts {
  const char* name;
  size_t n_bytes;  // 0: in the file
};

// By number.
constexpr ValueTypeFacts kValueTypes[] = {
    {"uint8", 1}, {"int8", 1},   {"uint16", 2}, {"int16", 2},  {"uint32", 4}, {"int32", 4},   {"float32", 4},
    {"bool", 1},  {"string", 0}, {"array", 0},  {"uint64", 8}, {"int64", 8},  {"float64", 8},
};
constexpr uint32_t kValueTypeCount = sizeof kValueTypes / sizeof *kValueTypes;

}  // namespace

size_t fixed_size(ValueType type) {
  const uint32_t number = static_cast<uint32_t>(type);
  return number < kValueTypeCount ? kValueTypes[number].n_bytes : 0;
}

const char* value_type_name(ValueType type) {
  const uint32_t number = static_cast<uint32_t>(type);
  return number < kValueTypeCount ? kValueTypes[number].name : nullptr;
}

uint64_t TensorInfo::n_rows() const {
  uint64_t n = 1;
  for (int dim = 1; dim < kMaxDims; ++dim) {
    n = shape[dim] != 0 && n > UINT64_MAX / shape[dim] ? UINT64_MAX : n * shape[dim];
  }
  return n;
}

const KeyValue* Header::find_key(std::string_view key) const {
  const auto position = key_index.find(key, [this](uint32_t at) { return keys[at].key; });
  return position ? &keys[*position] : nullptr;
}

const TensorInfo* Header::find_tensor(std::string_view name) const {
  const auto position = tensor_index.find(name, [this](uint32_t at) { return tensors[at].name; });
  return position ? &tensors[*position] : nullptr;
}

}  // namespace gguf
