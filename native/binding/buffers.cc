#include "binding/buffers.h"

#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "binding/environment.h"
#include "binding/errors.h"
#include "core/checked.h"

namespace gguf::binding {

namespace {

/**
 * Above these, JavaScript's own constructors are called: they throw a RangeError where Node-API would abort
 * the process, for lack of memory or beyond the longest array of the runtime.
 */
constexpr uint64_t kMaxDirectBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxDirectLength = UINT32_MAX;

struct ArrayType {
  const char* instance;
  size_t element_bytes;
};

// By napi_typedarray_type.
constexpr ArrayType kArrayTypes[] = {
    {"an instance of Int8Array", 1},         {"an instance of Uint8Array", 1},
    {"an instance of Uint8ClampedArray", 1}, {"an instance of Int16Array", 2},
    {"an instance of Uint16Array", 2},       {"an instance of Int32Array", 4},
    {"an instance of Uint32Array", 4},       {"an instance of Float32Array", 4},
    {"an instance of Float64Array", 8},      {"an instance of BigInt64Array", 8},
    {"an instance of BigUint64Array", 8},
};

napi_value new_array_buffer(Environment& environment, uint64_t n_bytes, void** data) {
  napi_value buffer;
  if (n_bytes <= kMaxDirectBytes) {
    check(environment.env, napi_create_arraybuffer(environment.env, to_size(n_bytes), data, &buffer));
    return buffer;
  }
  const Napi::Number size = Napi::Number::New(environment.env, static_cast<double>(n_bytes));
  buffer = environment.array_buffer.New({size});
  size_t found;
  check(environment.env, napi_get_arraybuffer_info(environment.env, buffer, data, &found));
  if (found != n_bytes) throw Napi::RangeError::New(environment.env, "the ArrayBuffer has another length");
  return buffer;
}

Napi::FunctionReference& constructor_of(Environment& environment, napi_typedarray_type type) {
  switch (type) {
    case napi_float32_array:
      return environment.float32_array;
    case napi_uint16_array:
      return environment.uint16_array;
    case napi_uint8_array:
      return environment.uint8_array;
    default:
      throw Napi::RangeError::New(environment.env, "longer than an array of this type is made");
  }
}

/**
 * What an external ArrayBuffer holds on to. Node does not document whether it calls the finalizer of a buffer
 * that it failed to make, and does so in some cases, so that both the maker and the finalizer own it. All on
 * one thread.
 */
struct FinalizerHint {
  std::shared_ptr<PinnedMemory> memory;
  int owners = 2;

  /** Asked by the maker. */
  bool is_finalized() const { return owners == 1; }
  void disown() {
    if (--owners == 0) delete this;
  }
};

void release(napi_env, void*, void* hint) {
  FinalizerHint* const own = static_cast<FinalizerHint*>(hint);
  own->memory.reset();
  own->disown();
}

}  // namespace

bool get_typed_array(napi_env env, napi_value value, TypedArray* array) {
  void* data = nullptr;
  const napi_status status =
      napi_get_typedarray_info(env, value, &array->type, &array->length, &data, nullptr, nullptr);
  array->data = static_cast<uint8_t*>(data);
  return status == napi_ok;
}

TypedArray array_argument(const Call& call, size_t index, const char* name, napi_typedarray_type type) {
  TypedArray array;
  if (!get_typed_array(call.env(), call[index], &array) || array.type != type) {
    throw_arg_type(call.environment(), name, kArrayTypes[type].instance);
  }
  return array;
}

TypedArray floats_argument(const Call& call, size_t index, const char* name) {
  const TypedArray array = array_argument(call, index, name, napi_float32_array);
  // Possible only over an external buffer that starts at an odd address.
  if (reinterpret_cast<uintptr_t>(array.data) % alignof(float) != 0) {
    throw_range(call.environment(), std::string("the memory of ") + name + " is not aligned to its elements");
  }
  return array;
}

bool is_shared(napi_env env, napi_value typed_array) {
  napi_value buffer;
  bool is_array_buffer;
  check(env, napi_get_typedarray_info(env, typed_array, nullptr, nullptr, nullptr, &buffer, nullptr));
  check(env, napi_is_arraybuffer(env, buffer, &is_array_buffer));
  return !is_array_buffer;
}

size_t element_bytes(napi_typedarray_type type) {
  const auto index = static_cast<uint32_t>(type);
  return index < std::size(kArrayTypes) ? kArrayTypes[index].element_bytes : 8;
}

napi_value new_typed_array(Environment& environment, napi_typedarray_type type, uint64_t length,
                           void** data) {
  const size_t size = element_bytes(type);
  if (length > UINT64_MAX / size) {
    throw_error(environment,
                Error{ErrorCode::kRange, std::to_string(length) + " elements do not fit in memory"});
  }
  const napi_value buffer = new_array_buffer(environment, length * size, data);
  return new_view(environment, type, buffer, 0, length);
}

napi_value new_whole_array(Environment& environment, napi_typedarray_type type, uint64_t length, void** data,
                           const std::string* path) {
  std::string failure;
  try {
    return new_typed_array(environment, type, length, data);
  } catch (const Napi::Error& error) {
    failure = error.Message();
  }
  const std::string detail = "there is no memory for an array of " + std::to_string(length) +
                             " elements of " + std::to_string(element_bytes(type)) + " bytes: " + failure;
  throw_error(environment, Error{ErrorCode::kOutOfMemory, detail}, path);
}

napi_value new_view(Environment& environment, napi_typedarray_type type, napi_value array_buffer,
                    uint64_t byte_offset, uint64_t length) {
  if (length > kMaxDirectLength) {
    Napi::Env env(environment.env);
    return constructor_of(environment, type)
        .New({array_buffer, Napi::Number::New(env, static_cast<double>(byte_offset)),
              Napi::Number::New(env, static_cast<double>(length))});
  }
  napi_value view;
  check(environment.env, napi_create_typedarray(environment.env, type, to_size(length), array_buffer,
                                                to_size(byte_offset), &view));
  return view;
}

bool keep_with(napi_env env, napi_value object, std::shared_ptr<PinnedMemory> memory) noexcept {
  const auto drop = [](napi_env, void* held, void*) {
    delete static_cast<std::shared_ptr<PinnedMemory>*>(held);
  };
  std::unique_ptr<std::shared_ptr<PinnedMemory>> held(new (std::nothrow)
                                                          std::shared_ptr<PinnedMemory>(std::move(memory)));
  if (held == nullptr || napi_add_finalizer(env, object, held.get(), drop, nullptr, nullptr) != napi_ok) {
    return false;
  }
  held.release();
  return true;
}

napi_value new_external(Environment& environment, void* data, uint64_t n_bytes,
                        std::shared_ptr<PinnedMemory> memory) {
  const napi_env env = environment.env;
  if (n_bytes > SIZE_MAX || !environment.has_external_buffers) return nullptr;
  FinalizerHint* const hint = new FinalizerHint{std::move(memory)};
  napi_value buffer;
  const napi_status status =
      napi_create_external_arraybuffer(env, data, to_size(n_bytes), release, hint, &buffer);
  if (status == napi_ok) {
    hint->disown();
    return buffer;
  }
  bool pending = false;
  napi_value exception;
  napi_is_exception_pending(env, &pending);
  if (pending) napi_get_and_clear_last_exception(env, &exception);
  hint->memory.reset();
  // The finalizer may have been called, or may be called later; where it is not, these few bytes leak, but
  // not the memory. A runtime that forbids such buffers is asked only once.
  if (status == napi_no_external_buffers_allowed) environment.has_external_buffers = false;
  // Nothing was begun, so that it will not be called.
  const bool was_stopped = (status == napi_pending_exception || status == napi_cannot_run_js) && !pending;
  if (was_stopped && !hint->is_finalized()) hint->disown();
  hint->disown();
  return nullptr;
}

}  // namespace gguf::binding
