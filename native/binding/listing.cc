#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/strings.h"

namespace gguf::binding {

namespace {

/** A property that is a typed array. */
template <class Element>
struct Column {
  napi_value array;
  Element* at;

  Column(Environment& environment, napi_typedarray_type type, size_t length) {
    void* data;
    array = new_typed_array(environment, type, length, &data);
    at = static_cast<Element*>(data);
  }
};

/** The bytes of a name, as they are in the file. */
napi_value new_name_bytes(const Call& call, std::string_view name) {
  void* to;
  const napi_value bytes = new_typed_array(call.environment(), napi_uint8_array, name.size(), &to);
  std::copy_n(name.data(), name.size(), static_cast<char*>(to));
  return bytes;
}

/** Entries that follow each other in a list, as the arguments after the file say. */
template <class Entry>
struct Range {
  const Entry* first;
  size_t count;

  Range(const Call& call, const std::vector<Entry>& entries) {
    const size_t position = call.position(1, "first", entries.size() + 1);
    first = entries.data() + position;
    count = call.position(2, "count", entries.size() - position + 1);
  }
  const Entry* begin() const { return first; }
  const Entry* end() const { return first + count; }
};

/** An array of the names of `entries`. */
template <class Entry>
napi_value new_names(Environment& environment, const Range<Entry>& entries, std::string_view Entry::*name) {
  ArrayBuilder names(environment);
  names.begin();
  for (const Entry& entry : entries) names.add(new_string(environment.env, entry.*name));
  return names.end();
}

/** The position in `index` of the name that is argument 1; -1 where it has none. */
template <class Entry>
napi_value position_of(const Call& call, const NameIndex& index, const std::vector<Entry>& entries,
                       std::string_view Entry::*name) {
  std::string text;
  if (!get_string(call.env(), call[1], &text)) throw_arg_type(call.environment(), "name", "of type string");
  const auto position = index.find(text, [&](uint32_t at) { return entries[at].*name; });
  return Napi::Number::New(call.env(), position ? static_cast<double>(*position) : -1);
}

napi_value new_positions(const Call& call, const std::vector<uint32_t>& positions) {
  Column<uint32_t> column(call.environment(), napi_uint32_array, positions.size());
  std::copy(positions.begin(), positions.end(), column.at);
  return column.array;
}

}  // namespace

napi_value file_info(const Call& call) {
  const Header& header = FileHandle::of(call, 0).header(call.environment());
  Napi::Object info = Napi::Object::New(call.env());
  info.Set("version", static_cast<double>(header.version));
  info.Set("bigEndian", header.byte_order == ByteOrder::kBig);
  info.Set("byteLength", static_cast<double>(header.file_size));
  info.Set("alignment", static_cast<double>(header.alignment));
  info.Set("dataOffset", static_cast<double>(header.data_offset));
  info.Set("isSplit", header.find_key("split.count") != nullptr);
  info.Set("keyCount", static_cast<double>(header.keys.size()));
  info.Set("tensorCount", static_cast<double>(header.tensors.size()));
  return info;
}

napi_value list_keys(const Call& call) {
  // Shared: names are pushed by JavaScript, which could close the file.
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  const Range<KeyValue> keys(call, header->keys);
  Environment& environment = call.environment();
  Column<uint8_t> types(environment, napi_uint8_array, keys.count);
  Column<uint8_t> element_types(environment, napi_uint8_array, keys.count);
  Column<double> lengths(environment, napi_float64_array, keys.count);
  Column<double> begins(environment, napi_float64_array, keys.count);
  Column<double> ends(environment, napi_float64_array, keys.count);
  // Before anything that may run JavaScript: what was looked up is good only until then.
  for (const KeyValue& key : keys) {
    *types.at++ = static_cast<uint8_t>(key.type);
    *element_types.at++ = static_cast<uint8_t>(key.element_type);
    *lengths.at++ = static_cast<double>(key.length);
    *begins.at++ = static_cast<double>(key.begin);
    *ends.at++ = static_cast<double>(key.end);
  }
  Napi::Object list = Napi::Object::New(call.env());
  list.Set("names", new_names(environment, keys, &KeyValue::key));
  list.Set("types", types.array);
  list.Set("elementTypes", element_types.array);
  list.Set("lengths", lengths.array);
  list.Set("begins", begins.array);
  list.Set("ends", ends.array);
  return list;
}

napi_value list_tensors(const Call& call) {
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  const Range<TensorInfo> tensors(call, header->tensors);
  const size_t count = tensors.count;
  Environment& environment = call.environment();
  Column<uint32_t> types(environment, napi_uint32_array, count);
  Column<uint8_t> dim_counts(environment, napi_uint8_array, count);
  Column<double> shapes(environment, napi_float64_array, count * TensorInfo::kMaxDims);
  Column<double> element_counts(environment, napi_float64_array, count);
  Column<double> byte_lengths(environment, napi_float64_array, count);
  Column<double> offsets(environment, napi_float64_array, count);
  for (const TensorInfo& tensor : tensors) {
    *types.at++ = tensor.type;
    *dim_counts.at++ = static_cast<uint8_t>(tensor.n_dims);
    for (const uint64_t dim : tensor.shape) *shapes.at++ = static_cast<double>(dim);
    *element_counts.at++ = static_cast<double>(tensor.n_elements);
    *byte_lengths.at++ =
        tensor.n_bytes == TensorInfo::kUnknownSize ? NAN : static_cast<double>(tensor.n_bytes);
    *offsets.at++ = static_cast<double>(tensor.offset);
  }
  Napi::Object list = Napi::Object::New(call.env());
  list.Set("names", new_names(environment, tensors, &TensorInfo::name));
  list.Set("types", types.array);
  list.Set("dimCounts", dim_counts.array);
  list.Set("shapes", shapes.array);
  list.Set("elementCounts", element_counts.array);
  list.Set("byteLengths", byte_lengths.array);
  list.Set("offsets", offsets.array);
  return list;
}

napi_value find_key(const Call& call) {
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  return position_of(call, header->key_index, header->keys, &KeyValue::key);
}

napi_value find_tensor(const Call& call) {
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  return position_of(call, header->tensor_index, header->tensors, &TensorInfo::name);
}

napi_value list_replaced_keys(const Call& call) {
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  return new_positions(call, header->replaced_keys);
}

napi_value list_replaced_tensors(const Call& call) {
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  return new_positions(call, header->replaced_tensors);
}

napi_value key_bytes(const Call& call) {
  // Shared: making a large array may run JavaScript, which could close the file.
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  return new_name_bytes(call, header->keys[call.position(1, "index", header->keys.size())].key);
}

napi_value tensor_name_bytes(const Call& call) {
  const std::shared_ptr<const Header> header = FileHandle::of(call, 0).shared_header(call.environment());
  return new_name_bytes(call, header->tensors[call.position(1, "index", header->tensors.size())].name);
}

}  // namespace gguf::binding
