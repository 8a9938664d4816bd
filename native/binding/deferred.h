// A promise and the means to settle it.
#pragma once

#include <napi.h>

#include "binding/call.h"

namespace gguf::binding {

class Environment;

/**
 * As napi_deferred, which Node frees only when it is settled: that cannot happen any more in a worker that is
 * being terminated, so every job under way would leak one. This holds two references instead.
 */
class Deferred {
 public:
  /** Makes the promise; once. */
  napi_value promise(Environment& environment);
  /** Settle the promise. In an environment that is being torn down they do nothing: nobody is left to tell.
   */
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
