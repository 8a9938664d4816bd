#include "test/fuzz/gguf_mutator.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "dequant/dequant.h"
#include "test/fuzz/gguf_fields.h"
#include "test/native/core/gguf_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace gguf::fuzz {

namespace {

using Bytes = std::vector<uint8_t>;

constexpr const char* kNames[] = {
    "general.alignment", "general.architecture", "a",        "b",  "token_embd.weight",    "__proto__", "",
    "general.alignmen",  "x\ny\x1b[31m",         "\xff\xfe", "ab", "tokenizer.ggml.tokens"};

std::string random_name(Random& random) {
  if (random.one_in(3)) return random.one_of(kNames);
  std::string name(1 + random.below(random.one_in(8) ? 40 : 6), 'k');
  for (char& c : name) c = static_cast<char>('a' + random.below(26));
  return name;
}

ptrdiff_t at(size_t offset) {
  return static_cast<ptrdiff_t>(offset);
}

// ---- generation

using Writer = test::GgufWriter;

void write_scalar(Writer& out, ValueType type, Random& random) {
  switch (fixed_size(type)) {
    case 1:
      out.u8(static_cast<uint8_t>(type == ValueType::kBool ? random.below(2) : random.bits()));
      break;
    case 2:
      out.u16(static_cast<uint16_t>(random.bits()));
      break;
    case 4:
      out.u32(static_cast<uint32_t>(random.bits()));
      break;
    case 8:
      out.u64(random.bits());
      break;
    default:
      out.string(random_name(random));
      break;
  }
}

void write_array(Writer& out, Random& random, size_t depth) {
  const auto type = static_cast<ValueType>(random.below(13));
  if (type == ValueType::kArray) {
    const size_t length = depth > 70 ? 0 : random.below(3);
    out.array(type, length);
    for (size_t i = 0; i < length; i++) write_array(out, random, depth + 1);
    return;
  }
  const size_t length = random.below(random.one_in(6) ? 40 : 5);
  out.array(type, length);
  for (size_t i = 0; i < length; i++) write_scalar(out, type, random);
}

/** A chain of arrays in arrays about as deep as is allowed. */
void write_deep_array(Writer& out, Random& random) {
  const size_t depth = 60 + random.below(8);
  for (size_t i = 0; i < depth; i++) out.array(ValueType::kArray, 1);
  out.array(ValueType::kString, 0);
}

void write_key(Writer& out, Random& random) {
  if (random.one_in(8)) {
    out.alignment(uint32_t{1} << random.below(8));
    return;
  }
  const auto type = static_cast<ValueType>(random.below(13));
  out.key(random_name(random), type);
  if (type != ValueType::kArray) {
    write_scalar(out, type, random);
  } else if (random.one_in(12)) {
    write_deep_array(out, random);
  } else {
    write_array(out, random, 1);
  }
}

void write_tensor(Writer& out, Random& random) {
  const auto& known = formats();
  const Format& format = known[random.below(known.size())];
  std::vector<uint64_t> shape(random.below(5));
  for (uint64_t& dim : shape) dim = random.below(4);
  if (!shape.empty()) shape[0] = format.block_elements * random.below(3);
  out.tensor(random_name(random), shape, random.one_in(10) ? static_cast<uint32_t>(random.bits()) : format.id,
             32 * random.below(8));
}

test::FileFormat random_format(Random& random) {
  constexpr test::FileFormat kFormats[] = {
      {3, ByteOrder::kLittle}, {3, ByteOrder::kBig}, {2, ByteOrder::kLittle}, {1, ByteOrder::kLittle}};
  return random.one_of(kFormats);
}

// ---- changes; each does nothing where the file has no such thing

void insert(Bytes& file, size_t offset, const Bytes& bytes) {
  file.insert(file.begin() + at(offset), bytes.begin(), bytes.end());
}

const Field* pick(const FieldMap& map, Random& random, bool (*wanted)(Role)) {
  const Field* found = nullptr;
  size_t n = 0;
  for (const Field& field : map.fields) {
    if (wanted(field.role) && field.count > 0 && random.one_in(++n)) found = &field;
  }
  return found;
}

uint64_t edge_value(Random& random, uint64_t before, uint64_t n_left) {
  switch (random.below(7)) {
    case 0:
      return before + random.below(5) - 2;
    case 1:
      return random.below(16);
    case 2:
      return (uint64_t{1} << random.below(64)) + random.below(3) - 1;
    case 3: {  // as many as just fit, or just do not
      constexpr uint64_t kSizes[] = {1, 2, 4, 8, 12, 13, 16, 17, 24};
      return n_left / random.one_of(kSizes) + random.below(3) - 1;
    }
    case 4:
      return n_left + random.below(64) - 32;
    case 5:
      return ~uint64_t{0} - random.below(40);
    default:
      return random.bits();
  }
}

void set_number(Bytes& file, const FieldMap& map, Random& random) {
  const Field* field = pick(map, random, [](Role role) { return role != Role::kText; });
  if (field == nullptr) return;
  const size_t offset = field->offset + field->width * random.below(field->count);
  const uint64_t before = read_number(&file[offset], field->width, map.big_endian);
  uint64_t value = edge_value(random, before, file.size() - offset - field->width);
  if ((field->role == Role::kValueType || field->role == Role::kElementType) && !random.one_in(4)) {
    value = random.below(14);
  }
  if (field->role == Role::kTensorType && !random.one_in(4)) value = random.below(45);
  if (field->role == Role::kTensorOffset && !random.one_in(4)) value = 32 * random.below(64);
  write_number(&file[offset], field->width, map.big_endian, value);
}

/** Makes a string, a name or an array of numbers longer or shorter, the length with it. */
void resize_field(Bytes& file, const FieldMap& map, Random& random) {
  std::vector<size_t> positions;
  for (size_t i = 0; i + 1 < map.fields.size(); i++) {
    const Role role = map.fields[i].role, next = map.fields[i + 1].role;
    const bool text = (role == Role::kNameLength || role == Role::kStringLength) && next == Role::kText;
    if (text || (role == Role::kArrayLength && (next == Role::kNumber || next == Role::kBool))) {
      positions.push_back(i);
    }
  }
  if (positions.empty()) return;
  const size_t position = positions[random.below(positions.size())];
  const Field& length = map.fields[position];
  const Field& content = map.fields[position + 1];
  size_t count = content.count;
  const size_t change = 1 + random.below(random.one_in(8) ? 60 : 4);
  if (random.one_in(2) && count > 0) {
    const size_t n_gone = std::min(change, count);
    file.erase(file.begin() + at(content.offset), file.begin() + at(content.offset + n_gone * content.width));
    count -= n_gone;
  } else {
    insert(file, content.offset, Bytes(change * content.width, content.role == Role::kText ? 'z' : 0));
    count += change;
  }
  write_number(&file[length.offset], length.width, map.big_endian, count);
}

void change_text(Bytes& file, const FieldMap& map, Random& random) {
  const Field* text = pick(map, random, [](Role role) { return role == Role::kText; });
  if (text == nullptr) return;
  file[text->offset + random.below(text->count)] =
      static_cast<uint8_t>(random.one_in(3) ? random.bits() : 'a' + random.below(3));
}

void add_to_count(Bytes& file, const FieldMap& map, Random& random, Role role, uint64_t change) {
  if (random.one_in(10)) return;
  for (const Field& field : map.fields) {
    if (field.role != role) continue;
    const uint64_t before = read_number(&file[field.offset], field.width, map.big_endian);
    write_number(&file[field.offset], field.width, map.big_endian, before + change);
  }
}

/** Doubles, drops, moves or adds a key or a tensor. */
void change_entries(Bytes& file, const FieldMap& map, Random& random) {
  const bool tensors = random.one_in(2);
  const std::vector<Entry>& entries = tensors ? map.tensors : map.keys;
  const Role count = tensors ? Role::kTensorCount : Role::kKeyCount;
  // Where all entries of this kind start.
  size_t first = 8 + 2 * map.length_bytes;
  if (tensors && !map.keys.empty()) first = map.keys.back().end;
  if (first > file.size()) return;
  const size_t what = random.below(4);
  if (entries.empty() || what == 0) {
    Writer out({map.length_bytes == 4 ? 1u : 3u, map.big_endian ? ByteOrder::kBig : ByteOrder::kLittle});
    tensors ? write_tensor(out, random) : write_key(out, random);
    insert(file, entries.empty() ? first : entries[random.below(entries.size())].end, out.bytes());
    add_to_count(file, map, random, count, 1);
    return;
  }
  const Entry& entry = entries[random.below(entries.size())];
  Bytes copy(file.begin() + at(entry.begin), file.begin() + at(entry.end));
  if (what == 1) {
    if (!random.one_in(6) && copy.size() > map.length_bytes) copy[map.length_bytes]++;  // another name
    insert(file, entry.end, copy);
    add_to_count(file, map, random, count, 1);
  } else {
    file.erase(file.begin() + at(entry.begin), file.begin() + at(entry.end));
    if (what == 2) {
      add_to_count(file, map, random, count, ~uint64_t{0});
    } else {
      insert(file, first, copy);
    }
  }
}

void turn_byte_order(Bytes& file, const FieldMap& map) {
  for (const Field& field : map.fields) {
    if (field.role == Role::kText) continue;
    for (size_t i = 0; i < field.count; i++) {
      const auto begin = file.begin() + at(field.offset + i * field.width);
      std::reverse(begin, begin + at(field.width));
    }
  }
}

void cut_or_grow(Bytes& file, Random& random) {
  if (random.one_in(2) && !file.empty()) {
    file.resize(file.size() - 1 - random.below(std::min<size_t>(file.size(), random.one_in(2) ? 4 : 4000)));
  } else {
    file.resize(file.size() + 1 + random.below(100));
  }
}

/** Lays the tensors out one after the other and gives the file their bytes, as far as they are few. */
void lay_out(Bytes& file, Random& random) {
  const FieldMap map = map_fields(file.data(), file.size());
  if (!map.complete || map.tensors.empty()) return;
  constexpr uint64_t kAlignment = 256;  // a multiple of most that a file may ask for
  uint64_t offset = 0;
  uint64_t dims[4] = {1, 1, 1, 1};
  size_t n_dims = 0;
  uint64_t type = 0;
  for (const Field& field : map.fields) {
    uint8_t* bytes = &file[field.offset];
    if (field.role == Role::kDimCount) {
      n_dims = 0;
      std::fill_n(dims, 4, 1);
    } else if (field.role == Role::kDim && n_dims < 4) {
      dims[n_dims++] = std::min<uint64_t>(read_number(bytes, field.width, map.big_endian), 1 << 12);
    } else if (field.role == Role::kTensorType) {
      type = read_number(bytes, field.width, map.big_endian);
    } else if (field.role == Role::kTensorOffset) {
      write_number(bytes, field.width, map.big_endian, offset);
      const Format* format = find_format(static_cast<uint32_t>(type));
      const uint64_t n = dims[0] * dims[1] * dims[2] * dims[3];
      if (format != nullptr) offset += n / format->block_elements * format->block_bytes;
      offset = (offset + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  const uint64_t data = (map.end + kAlignment - 1) / kAlignment * kAlignment;
  if (offset < 3000 && !random.one_in(8)) file.resize(data + offset);
}

}  // namespace

Bytes generate_gguf(Random& random) {
  Writer out(random_format(random));
  const size_t n_tensors = random.below(4), n_keys = random.below(6);
  out.header(n_tensors, n_keys);
  for (size_t i = 0; i < n_keys; i++) write_key(out, random);
  for (size_t i = 0; i < n_tensors; i++) write_tensor(out, random);
  out.pad();
  Bytes file = out.bytes();
  lay_out(file, random);
  return file;
}

void mutate_gguf(Bytes& file, Random& random) {
  for (size_t n = 1 + random.below(3); n > 0; n--) {
    const FieldMap map = map_fields(file.data(), file.size());
    switch (random.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        resize_field(file, map, random);
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        change_entries(file, map, random);
        break;
      case 8:
        change_text(file, map, random);
        break;
      case 9:
        cut_or_grow(file, random);
        break;
      case 10:
        turn_byte_order(file, map);
        break;
      default:
        set_number(file, map, random);
        break;
    }
  }
  if (random.one_in(2)) lay_out(file, random);
}

size_t mutate_input(uint8_t* data, size_t size, size_t max_size, unsigned seed, size_t n_options) {
  Random random(seed);
  if (size > n_options && random.one_in(4)) return LLVMFuzzerMutate(data, size, max_size);
  if (size < n_options) std::memset(data + size, 0, n_options - size);
  if (random.one_in(4)) data[random.below(n_options)] = static_cast<uint8_t>(random.bits());
  Bytes file;
  if (size <= n_options + 24 || random.one_in(50)) {
    file = generate_gguf(random);
  } else {
    file.assign(data + n_options, data + size);
    mutate_gguf(file, random);
  }
  const size_t n_bytes = std::min(file.size(), max_size - n_options);
  std::copy_n(file.begin(), n_bytes, data + n_options);
  return n_options + n_bytes;
}

}  // namespace gguf::fuzz
