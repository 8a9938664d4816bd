#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/strings.h"
#include "core/checked.h"
#include "core/value_reader.h"

namespace gguf::binding {

namespace {

// The arrays of numbers by ValueType; bools, strings and arrays have none.
constexpr napi_typedarray_type kArrayTypes[] = {
    napi_uint8_array,     napi_int8_array,     napi_uint16_array,  napi_int16_array, napi_uint32_array,
    napi_int32_array,     napi_float32_array,  napi_uint8_array,   napi_uint8_array, napi_uint8_array,
    napi_biguint64_array, napi_bigint64_array, napi_float64_array,
};

template <class Number>
Number load(const void* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

/** A number that a double holds. */
double load_double(ValueType type, const void* value) {
  switch (type) {
    case ValueType::kUint8:
      return load<uint8_t>(value);
    case ValueType::kInt8:
      return load<int8_t>(value);
    case ValueType::kUint16:
      return load<uint16_t>(value);
    case ValueType::kInt16:
      return load<int16_t>(value);
    case ValueType::kUint32:
      return load<uint32_t>(value);
    case ValueType::kInt32:
      return load<int32_t>(value);
    case ValueType::kFloat32:
      return load<float>(value);
    default:
      return load<double>(value);
  }
}

napi_value new_number(napi_env env, ValueType type, const void* value) {
  napi_value number;
  if (type == ValueType::kUint64) {
    check(env, napi_create_bigint_uint64(env, load<uint64_t>(value), &number));
  } else if (type == ValueType::kInt64) {
    check(env, napi_create_bigint_int64(env, load<int64_t>(value), &number));
  } else {
    check(env, napi_create_double(env, load_double(type, value), &number));
  }
  return number;
}

/**
 * Receives a value. The reader knows nothing of exceptions, so an exception here is kept, stops the reading,
 * and is thrown again by result().
 */
class ToJavaScript : public ValueVisitor {
 public:
  /** `path`: of the file, if there is one. */
  ToJavaScript(Environment& environment, const std::string* path)
      : environment_(environment), path_(path), arrays_(environment) {}

  /** The value; nullptr where the reading failed. */
  napi_value result() {
    if (failure_) std::rethrow_exception(failure_);
    return result_;
  }

  bool number(ValueType type, const void* value) override {
    return guarded([&] { put(new_number(environment_.env, type, value)); });
  }

  bool boolean(bool value) override {
    return guarded([&] { put(new_boolean(value)); });
  }

  bool string(std::string_view bytes) override {
    return guarded([&] {
      napi_value text;
      if (create_string(environment_.env, bytes, &text) != napi_ok) {
        const std::string detail =
            "a string of " + std::to_string(bytes.size()) + " bytes is longer than this runtime allows";
        throw_error(environment_, Error{ErrorCode::kOutOfMemory, detail}, path_);
      }
      put(text);
    });
  }

  bool begin_array(ValueType element_type, uint64_t length) override {
    return guarded([&] {
      in_numbers_ = fixed_size(element_type) != 0 && element_type != ValueType::kBool;
      if (!in_numbers_) {
        arrays_.begin();
      } else if (length == 0) {
        put(new_numbers(element_type, 0, nullptr));  // numbers() is not called then
      }
    });
  }

  bool numbers(ValueType type, const uint8_t* bytes, uint64_t count, ByteOrder order) override {
    return guarded([&] {
      void* to;
      const napi_value array = new_numbers(type, count, &to);
      copy_numbers(type, bytes, count, order, to);
      put(array);
    });
  }

  bool booleans(const uint8_t* bytes, uint64_t count) override {
    return guarded([&] {
      for (uint64_t i = 0; i < count; ++i) arrays_.add(new_boolean(bytes[i] != 0));
    });
  }

  bool end_array() override {
    return guarded([&] {
      if (in_numbers_) {
        in_numbers_ = false;
        return;
      }
      const napi_value array = arrays_.end();
      if (arrays_.depth() == 0) result_ = array;
    });
  }

 private:
  template <class Step>
  bool guarded(Step step) noexcept {
    try {
      step();
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  void put(napi_value value) {
    if (arrays_.depth() > 0) {
      arrays_.add(value);
    } else {
      result_ = value;
    }
  }

  napi_value new_boolean(bool value) {
    napi_value boolean;
    check(environment_.env, napi_get_boolean(environment_.env, value, &boolean));
    return boolean;
  }

  napi_value new_numbers(ValueType type, uint64_t count, void** to) {
    void* unused;
    return new_whole_array(environment_, kArrayTypes[static_cast<uint32_t>(type)], count,
                           to == nullptr ? &unused : to, path_);
  }

  Environment& environment_;
  const std::string* const path_;
  ArrayBuilder arrays_;
  bool in_numbers_ = false;  // inside an array of numbers, which holds no other array
  napi_value result_ = nullptr;
  std::exception_ptr failure_;
};

/** Collects where the strings of a value are, relative to `base`. */
class StringPlaces : public ValueVisitor {
 public:
  struct Place {
    size_t offset;
    size_t length;
  };

  explicit StringPlaces(const uint8_t* base) : base_(base) {}

  std::vector<Place> places;
  bool out_of_memory = false;

  bool string(std::string_view bytes) override {
    try {
      places.push_back(
          {static_cast<size_t>(reinterpret_cast<const uint8_t*>(bytes.data()) - base_), bytes.size()});
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
    return !out_of_memory;
  }

  bool number(ValueType, const void*) override { return true; }
  bool boolean(bool) override { return true; }
  bool begin_array(ValueType, uint64_t) override { return true; }
  bool numbers(ValueType, const uint8_t*, uint64_t, ByteOrder) override { return true; }
  bool booleans(const uint8_t*, uint64_t) override { return true; }
  bool end_array() override { return true; }

 private:
  const uint8_t* base_;
};

const KeyValue& key_argument(const Call& call, const Header& header) {
  return header.keys[call.position(1, "index", header.keys.size())];
}

/** Hands the value of `key`, which `bytes` holds, to `visitor`, and throws what fails. */
void read(Environment& environment, const FileHandle& file, const Header& header, const KeyValue& key,
          const Bytes& bytes, ValueVisitor& visitor) {
  const uint64_t n_bytes = key.end - key.begin;
  const Status failure = read_value(key, header, bytes.data, key.begin, n_bytes, visitor);
  // First whether these were the file's bytes: where they were not, other errors mean nothing.
  if (const Status cut = bytes.check(key.begin, n_bytes)) throw_error(environment, *cut, file.path());
  if (failure) throw_error(environment, *failure, file.path());
}

}  // namespace

napi_value metadata_value(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  // Elements of arrays are pushed by JavaScript: a setter on a prototype could run other code, which could
  // close the file.
  const std::shared_ptr<const Header> header = file.shared_header(call.environment());
  const KeyValue& key = key_argument(call, *header);
  const bool runs_javascript = key.type == ValueType::kArray;
  const Bytes bytes = file.bytes(call.environment(), key.begin, key.end, runs_javascript);
  ToJavaScript visitor(call.environment(), file.path());
  read(call.environment(), file, *header, key, bytes, visitor);
  return visitor.result();
}

napi_value metadata_bytes(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  const std::shared_ptr<const Header> header = file.shared_header(call.environment());
  const KeyValue& key = key_argument(call, *header);
  if (key.element_type != ValueType::kString) return nullptr;
  Environment& environment = call.environment();
  const size_t n_bytes = to_size(key.end - key.begin);
  // One copy for all strings: their arrays are views of it. Made first, since that may run JavaScript.
  void* to;
  const napi_value all = new_whole_array(environment, napi_uint8_array, n_bytes, &to, file.path());
  std::vector<StringPlaces::Place> places;
  {
    const Bytes bytes = file.bytes(environment, key.begin, key.end, false);
    StringPlaces visitor(bytes.data);
    read(environment, file, *header, key, bytes, visitor);
    if (visitor.out_of_memory) throw std::bad_alloc();
    places = std::move(visitor.places);
    if (n_bytes > 0) std::memcpy(to, bytes.data, n_bytes);
    if (const Status failure = bytes.check(key.begin, n_bytes)) {
      throw_error(environment, *failure, file.path());
    }
  }
  napi_value buffer;
  check(call.env(), napi_get_typedarray_info(call.env(), all, nullptr, nullptr, nullptr, &buffer, nullptr));
  if (key.type == ValueType::kString) {
    return new_view(environment, napi_uint8_array, buffer, places.at(0).offset, places.at(0).length);
  }
  ArrayBuilder strings(environment);
  strings.begin();
  for (const StringPlaces::Place& place : places) {
    strings.add(new_view(environment, napi_uint8_array, buffer, place.offset, place.length));
  }
  return strings.end();
}

napi_value read_metadata_bytes(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  const KeyValue& key = key_argument(call, file.header(call.environment()));
  // Who reads a long value in pieces does not want all of it in memory. No view is of these bytes.
  file.copy_bytes(call, key.begin, key.end - key.begin, "value", true);
  return nullptr;
}

}  // namespace gguf::binding
