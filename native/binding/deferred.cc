#include "binding/deferred.h"

#include "binding/environment.h"
#include "binding/errors.h"

namespace gguf::binding {

napi_value Deferred::promise(Environment& environment) {
  environment.new_deferred = this;
  return environment.promise.New({environment.settler_taker.Value()});
}

napi_value take_settlers(const Call& call) {
  Deferred* const deferred = call.environment().new_deferred;
  if (deferred == nullptr) return nullptr;
  call.environment().new_deferred = nullptr;
  deferred->resolve_ = Napi::Persistent(call.function(0, "resolve"));
  deferred->reject_ = Napi::Persistent(call.function(1, "reject"));
  return nullptr;
}

void Deferred::resolve(napi_value value) {
  settle(resolve_, value);
}

void Deferred::reject(napi_value reason) {
  settle(reject_, reason);
}

void Deferred::settle(Napi::FunctionReference& settler, napi_value value) {
  const Napi::Env env = settler.Env();
  napi_call_function(env, env.Undefined(), settler.Value(), 1, &value, nullptr);
  resolve_.Reset();
  reject_.Reset();
}

}  // namespace gguf::binding
