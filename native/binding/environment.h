// What the addon keeps per environment: the main thread has one, every worker thread has its own.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "binding/lent_results.h"
#include "binding/scheduler.h"

namespace gguf::binding {

class Deferred;

/**
 * The state of one environment, owned by it as its instance data. Used on its thread only. Members are
 * destroyed from the last to the first: what uses another member stands below it.
 */
class Environment {
 public:
  /** Makes the state and hands it to `env`, which deletes it when it ends. */
  static Environment& install(napi_env env);

  const napi_env env;

  /** Makes the errors; empty until setErrorFactory. */
  Napi::FunctionReference error_factory;
  /** Array.prototype.push and constructors, as they were when the addon was loaded. */
  Napi::FunctionReference array_push;
  Napi::FunctionReference promise;
  Napi::FunctionReference array_buffer;
  Napi::FunctionReference uint8_array;
  Napi::FunctionReference uint16_array;
  Napi::FunctionReference float32_array;

  /** take_settlers as a JavaScript function, and whose promise it is called for. */
  Napi::FunctionReference settler_taker;
  Deferred* new_deferred = nullptr;

  /** Memory for blocks on their way from a file that is read. */
  std::vector<uint8_t> scratch;
  /** Row numbers of the call at work. */
  std::vector<uint64_t> rows;

  LentResults lent_results;

  Scheduler scheduler;

 private:
  explicit Environment(napi_env env);
};

}  // namespace gguf::binding
