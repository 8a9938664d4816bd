// A promise and the means to settle it.
#pragma once

#include <napi.h>

#include "binding/call.h"

namespace gguf::binding {

class Environment;

/**
 * Like napi_deferred, which Node frees only when it is settled. That cannot happen any more in a worker that
 * is being terminated, so every job in progress would leak one. This holds two references instead.
 */
class Deferred {
 public:
  /** Makes the promise; once. Runs JavaScript. */
  napi_value promise(Environment& environment);
  /** Settle the promise, which runs JavaScript. In an environment that is ending they do nothing. */
  void resolve(napi_value value);
  void reject(napi_value reason);

 private:
  friend napi_value take_settlers(const Call& call);
  void settle(Napi::FunctionReference& settler, napi_value value);

  Napi::FunctionReference resolve_;
  Napi::FunctionReference reject_;
};

/** The function that a new Promise calls at once with its resolve and reject: for Environment. */
napi_value take_settlers(const Call& call);

}  // namespace gguf::binding
