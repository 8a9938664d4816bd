// What the addon keeps per environment: the main thread has one, every worker thread has its own.
//
// The rule for all of binding/: no pointer, iterator or reference into an environment, a file handle, a job
// or the memory of an array is kept across a call that can run JavaScript. JavaScript can close files, start
// and cancel jobs, detach arrays, and call into the addon again. What is needed afterwards is copied, held
// by a shared_ptr or looked up again; arguments of a call, and what they own, stay during that call. Vectors
// kept for later calls are moved out while JavaScript can run.
//
// What can run JavaScript: calling functions and constructors; getting and asking for properties of objects
// that JavaScript can reach (getters, proxies); setting properties, even of new objects and by push (setters
// of prototypes); making errors of JavaScript's (Error.prepareStackTrace), not those of errors.h; making
// promises, and creating and queueing asynchronous work (hooks of async_hooks); settling promises (a getter
// named `then`). What cannot: making plain objects, numbers, strings, buffers and typed arrays by
// napi_create_*; references, type checks, and asking where the memory of an array is.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "binding/async_tasks.h"
#include "binding/scheduler.h"
#include "machine/helper_threads.h"

namespace gguf::binding {

class Deferred;

/**
 * The state of one environment, destroyed by its cleanup hook: the last moment at which every runtime still
 * has the environment, and the memory of its arrays. Used on its thread only. Members are destroyed from the
 * last to the first: each stands below the members that it uses.
 */
class Environment {
 public:
  /** Makes the state, which exists until `env` ends. */
  static Environment& install(napi_env env);

  const napi_env env;

  /** The object by which the facade recognises what the addon throws: an export of the addon. */
  Napi::ObjectReference failure_mark;
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

  /** Memory for blocks that are read from a file, and for rows of numbers. Only used while no JavaScript
   * runs. */
  std::vector<uint8_t> scratch;
  /** Memory for row numbers, from one call to the next. */
  std::vector<uint64_t> spare_rows;

  /** Until the runtime has said that it has none. */
  bool has_external_buffers = true;

  /** Of results that are made in memory of their own, to be copied in the end. */
  uint64_t staged_bytes = 0;

  /** Of all environments: the last to end ends them. */
  const std::shared_ptr<HelperThreads> helper_threads = HelperThreads::shared();

  Scheduler scheduler;

  /** The last: its end waits for what uses the others. */
  AsyncTasks async_tasks;

 private:
  explicit Environment(napi_env env);
};

}  // namespace gguf::binding
