// Typed arrays and the memory behind them.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "binding/call.h"
#include "core/file.h"
#include "machine/pinned_memory.h"

namespace gguf::binding {

class Environment;

/** A typed array as it is right now; the pointer is good until JavaScript runs again. */
struct TypedArray {
  napi_typedarray_type type = static_cast<napi_typedarray_type>(-1);  // of a type that Node-API does not know
  size_t length = 0;                                                  // elements; 0 when detached
  uint8_t* data = nullptr;
};

/** False where `value` is not a typed array. */
bool get_typed_array(napi_env env, napi_value value, TypedArray* array);

/** The array of argument `index`, which must be of this type. */
TypedArray array_argument(const Call& call, size_t index, const char* name, napi_typedarray_type type);

/** The Float32Array of argument `index`, aligned to its elements. */
TypedArray floats_argument(const Call& call, size_t index, const char* name);

/**
 * Whether `typed_array` lies in a SharedArrayBuffer, which can neither be detached nor shrink: its memory
 * stays as long as the array is referenced.
 */
bool is_shared(napi_env env, napi_value typed_array);

size_t element_bytes(napi_typedarray_type type);

/** A new typed array of `length` elements in JavaScript's memory, zeroed; `*data` is where they are. May run
   JavaScript, where it is large. */
napi_value new_typed_array(Environment& environment, napi_typedarray_type type, uint64_t length, void** data);

/**
 * The same for content that a caller gets whole, however large it is: ERR_GGUF_OUT_OF_MEMORY where the
 * runtime cannot make such an array. `path`: of the file that an error is about, if there is one. May run
 * JavaScript.
 */
napi_value new_whole_array(Environment& environment, napi_typedarray_type type, uint64_t length, void** data,
                           const std::string* path);

/** A typed array over `array_buffer`; `type` is one that the addon uses for large data. */
napi_value new_view(Environment& environment, napi_typedarray_type type, napi_value array_buffer,
                    uint64_t byte_offset, uint64_t length);

/** Keeps `memory` at least as long as `object` is not collected. False if that cannot be. */
bool keep_with(napi_env env, napi_value object, std::shared_ptr<PinnedMemory> memory) noexcept;

/**
 * An ArrayBuffer over the `n_bytes` (not 0) at `data`, without a copy; keeps `memory` until it is
 * collected or detached. nullptr where that cannot be: the runtime forbids it (Electron), or has a lower
 * limit for these.
 */
napi_value new_external(Environment& environment, void* data, uint64_t n_bytes,
                        std::shared_ptr<PinnedMemory> memory);

}  // namespace gguf::binding
