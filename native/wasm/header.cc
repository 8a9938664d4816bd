// Headers and values: what the caller brings of a file, parsed and handed back as tables.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/parse.h"
#include "core/value_reader.h"
#include "dequant/type_size.h"
#include "wasm/module.h"
#include "wasm/reply.h"
#include "wasm/utf16.h"

namespace gguf {

namespace {

/** A column: `field` of each entry. */
template <class T, class Entry, class Field>
std::vector<T> column(const std::vector<Entry>& entries, Field field) {
  std::vector<T> values;
  values.reserve(entries.size());
  for (const Entry& entry : entries) values.push_back(static_cast<T>(field(entry)));
  return values;
}

/** Two columns: the text of all names, and their sizes. */
template <class Entry>
void add_names(const std::vector<Entry>& entries, std::string_view Entry::*name, Reply& reply) {
  std::string text;
  std::vector<uint32_t> sizes;
  for (const Entry& entry : entries) {
    text += entry.*name;
    add_sizes(entry.*name, sizes);
  }
  reply.add(std::move(text));
  reply.add(std::move(sizes));
}

void add_info(const Header& header, Reply& reply) {
  reply.add(std::vector<double>{
      static_cast<double>(header.version),
      header.byte_order == ByteOrder::kBig ? 1.0 : 0.0,
      static_cast<double>(header.file_size),
      static_cast<double>(header.alignment),
      static_cast<double>(header.data_offset),
      header.find_key("split.count") != nullptr ? 1.0 : 0.0,
      static_cast<double>(header.keys.size()),
      static_cast<double>(header.tensors.size()),
  });
}

void add_keys(const std::vector<KeyValue>& keys, Reply& reply) {
  add_names(keys, &KeyValue::key, reply);
  reply.add(column<uint8_t>(keys, [](const KeyValue& key) { return key.type; }));
  reply.add(column<uint8_t>(keys, [](const KeyValue& key) { return key.element_type; }));
  reply.add(column<double>(keys, [](const KeyValue& key) { return key.length; }));
  reply.add(column<double>(keys, [](const KeyValue& key) { return key.begin; }));
  reply.add(column<double>(keys, [](const KeyValue& key) { return key.end; }));
}

/** Offset and bytes of each tensor, where a double does not hold them all; otherwise nothing. */
std::vector<uint64_t> exact_extents(const std::vector<TensorInfo>& tensors) {
  constexpr uint64_t kMaxExact = uint64_t{1} << 53;
  const auto is_large = [](const TensorInfo& tensor) {
    return tensor.offset > kMaxExact ||
           (tensor.n_bytes != TensorInfo::kUnknownSize && tensor.n_bytes > kMaxExact);
  };
  std::vector<uint64_t> extents;
  if (std::none_of(tensors.begin(), tensors.end(), is_large)) return extents;
  extents.reserve(2 * tensors.size());
  for (const TensorInfo& tensor : tensors) extents.insert(extents.end(), {tensor.offset, tensor.n_bytes});
  return extents;
}

void add_tensors(const std::vector<TensorInfo>& tensors, Reply& reply) {
  add_names(tensors, &TensorInfo::name, reply);
  reply.add(column<uint32_t>(tensors, [](const TensorInfo& tensor) { return tensor.type; }));
  reply.add(column<uint8_t>(tensors, [](const TensorInfo& tensor) { return tensor.n_dims; }));
  std::vector<double> shapes;
  shapes.reserve(tensors.size() * TensorInfo::kMaxDims);
  for (const TensorInfo& tensor : tensors) {
    for (const uint64_t dim : tensor.shape) shapes.push_back(static_cast<double>(dim));
  }
  reply.add(std::move(shapes));
  reply.add(column<double>(tensors, [](const TensorInfo& tensor) { return tensor.n_elements; }));
  reply.add(column<double>(tensors, [](const TensorInfo& tensor) {
    return tensor.n_bytes == TensorInfo::kUnknownSize ? NAN : static_cast<double>(tensor.n_bytes);
  }));
  reply.add(column<double>(tensors, [](const TensorInfo& tensor) { return tensor.offset; }));
  reply.add(exact_extents(tensors));
}

/** Writes a value to the tape that src/backend/wasm/values.ts reads. */
class TapeWriter : public ValueVisitor {
 public:
  /** `value`: where the bytes of the value are, whose numbers are brought into the host's byte order there.
   */
  explicit TapeWriter(uint8_t* value) : value_(value) {}

  std::vector<uint32_t> tape;
  std::string text;

  bool number(ValueType type, const void* value) override {
    uint32_t words[2] = {};
    std::memcpy(words, value, fixed_size(type));
    tape.insert(tape.end(), words, words + 2);
    return true;
  }

  bool boolean(bool value) override {
    tape.push_back(value ? 1 : 0);
    return true;
  }

  bool string(std::string_view bytes) override {
    text += bytes;
    add_sizes(bytes, tape);
    return true;
  }

  bool begin_array(ValueType element_type, uint64_t length) override {
    tape.insert(tape.end(), {static_cast<uint32_t>(element_type), static_cast<uint32_t>(to_size(length)), 0});
    return true;
  }

  bool numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order) override {
    set_place(bytes);
    uint8_t* const place = value_ + tape.back();
    if (order == ByteOrder::kBig) copy_numbers(type, bytes, count, order, place);
    return true;
  }

  bool booleans(const uint8_t* bytes, uint64_t) override {
    set_place(bytes);
    return true;
  }

  bool end_array() override { return true; }

 private:
  /** In the head of the array that has just begun. */
  void set_place(const uint8_t* bytes) { tape.back() = static_cast<uint32_t>(bytes - value_); }

  uint8_t* const value_;
};

}  // namespace

/**
 * Parses the header of a file of `file_size` bytes, of which the first n_bytes are at `bytes`. One column
 * with the number of bytes that are needed where the header continues after these; otherwise the tables, in
 * the order in which src/backend/wasm/header.ts takes them.
 */
GGUF_EXPORT("parse")
const Reply* module_parse(const uint8_t* bytes, uint32_t n_bytes, double file_size, bool partial) {
  ParseOptions options;
  options.partial = partial;
  const ParseOutcome outcome =
      parse_header_or_throw(bytes, n_bytes, static_cast<uint64_t>(file_size), type_size, options);
  if (!outcome.need_more && !outcome.result.ok()) return new Reply(outcome.result.error());
  Reply* const reply = new Reply;
  if (outcome.need_more) {
    reply->add(std::vector<double>{static_cast<double>(outcome.n_needed)});
    return reply;
  }
  const Header& header = outcome.result.value();
  add_info(header, *reply);
  add_keys(header.keys, *reply);
  reply->add(std::vector<uint32_t>(header.replaced_keys));
  add_tensors(header.tensors, *reply);
  reply->add(std::vector<uint32_t>(header.replaced_tensors));
  return reply;
}

/**
 * Reads a value, of which all is known that parse says of it, from its bytes. Columns: the tape and the text.
 * Numbers and bools of arrays stay in the bytes, in the host's byte order.
 */
GGUF_EXPORT("read_value")
const Reply* module_read_value(uint8_t* bytes, uint32_t n_bytes, const char* name, uint32_t n_name_bytes,
                               uint32_t type, uint32_t element_type, double length, double begin, double end,
                               uint32_t version, bool big_endian) {
  KeyValue entry = {};
  entry.key = {name, n_name_bytes};
  entry.type = static_cast<ValueType>(type);
  entry.element_type = static_cast<ValueType>(element_type);
  entry.length = static_cast<uint64_t>(length);
  entry.begin = static_cast<uint64_t>(begin);
  entry.end = static_cast<uint64_t>(end);
  Header header;
  header.version = version;
  header.byte_order = big_endian ? ByteOrder::kBig : ByteOrder::kLittle;
  TapeWriter visitor(bytes);
  if (const Status failure = read_value(entry, header, bytes, entry.begin, n_bytes, visitor)) {
    return new Reply(*failure);
  }
  Reply* const reply = new Reply;
  reply->add(std::move(visitor.tape));
  reply->add(std::move(visitor.text));
  return reply;
}

}  // namespace gguf
