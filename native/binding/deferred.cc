#include "binding/deferred.h"

#include "binding/environment.h"
#include "binding/errors.h"

namespace gguf::binding {

napi_value Deferred::promise(Environment& environment) {
  // JavaScript may be told of new promises (async_hooks) before their function is called, and make more of
  // ours.
  struct Turn {
    Deferred*& current;
    Deferred* const outer;
    ~Turn() { current = outer; }
  } const turn{environment.new_deferred, environment.new_deferred};
  turn.current = this;
  return environment.promise.New({environment.settler_taker.Value()});
}

napi_value take_settlers(const Call& call) {
  Deferred* const deferred = call.environment().new_deferred;
  if (deferred == nullptr) return nullptr;
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
  const napi_value function = settler.Value();
  resolve_.Reset();
  reject_.Reset();
  napi_call_function(env, env.Undefined(), function, 1, &value, nullptr);
}

}  // namespace gguf::binding
