#include "binding/environment.h"

#include <memory>

#include "binding/deferred.h"
#include "binding/errors.h"

namespace gguf::binding {

Environment::Environment(napi_env node_env) : env(node_env), scheduler(*this), async_tasks(*this) {
  const Napi::Object global = Napi::Env(env).Global();
  const auto constructor = [&](const char* name) {
    return Napi::Persistent(global.Get(name).As<Napi::Function>());
  };
  failure_mark = Napi::Persistent(Napi::Object::New(env));
  const Napi::Object array_prototype =
      global.Get("Array").As<Napi::Object>().Get("prototype").As<Napi::Object>();
  array_push = Napi::Persistent(array_prototype.Get("push").As<Napi::Function>());
  promise = constructor("Promise");
  array_buffer = constructor("ArrayBuffer");
  uint8_array = constructor("Uint8Array");
  uint16_array = constructor("Uint16Array");
  float32_array = constructor("Float32Array");
  napi_value function;
  check(env, napi_create_function(env, nullptr, 0, entry<take_settlers>, this, &function));
  settler_taker = Napi::Persistent(Napi::Function(env, function));
}

Environment& Environment::install(napi_env env) {
  std::unique_ptr<Environment> environment(new Environment(env));
  const auto destroy = [](void* data) { delete static_cast<Environment*>(data); };
  check(env, napi_add_env_cleanup_hook(env, destroy, environment.get()));
  return *environment.release();
}

}  // namespace gguf::binding
