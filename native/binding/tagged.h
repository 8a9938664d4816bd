// Objects that stand for native ones: tagged, so that no other object is ever taken for one.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "binding/errors.h"

namespace gguf::binding {

/**
 * Makes a JavaScript object that owns `native` and carries `tag`. Without a tag, unwrapping an object of
 * another kind would reinterpret its memory. `n_bytes` is about the memory that it takes, which V8
 * would not know of: it would not collect garbage while unused objects pile up.
 */
template <class Native>
napi_value wrap(napi_env env, const napi_type_tag& tag, std::unique_ptr<Native> native, size_t n_bytes) {
  const auto destroy = [](napi_env its_env, void* data, void* size) {
    int64_t total;
    napi_adjust_external_memory(its_env, -static_cast<int64_t>(reinterpret_cast<uintptr_t>(size)), &total);
    delete static_cast<Native*>(data);
  };
  napi_value object;
  int64_t total;
  check(env, napi_create_object(env, &object));
  check(env, napi_type_tag_object(env, object, &tag));
  check(env, napi_wrap(env, object, native.get(), destroy, reinterpret_cast<void*>(n_bytes), nullptr));
  native.release();
  check(env, napi_adjust_external_memory(env, static_cast<int64_t>(n_bytes), &total));
  return object;
}

/** What `wrap` put into `value`; nullptr where it is not an object with `tag`. */
template <class Native>
Native* unwrap(napi_env env, const napi_type_tag& tag, napi_value value) {
  bool tagged;
  void* native;
  if (napi_check_object_type_tag(env, value, &tag, &tagged) != napi_ok) {
    napi_value unused;  // null and undefined leave an exception of the runtime's own
    napi_get_and_clear_last_exception(env, &unused);
    return nullptr;
  }
  if (!tagged) return nullptr;
  if (napi_unwrap(env, value, &native) != napi_ok) return nullptr;
  return static_cast<Native*>(native);
}

}  // namespace gguf::binding
