// Work on the runtime's pool of threads, and the end of an environment while some of it is under way.
//
// Node waits for the tasks of an environment before it ends it. Other runtimes do not: Bun calls `complete`
// for an environment that is gone, and Deno frees memory that a thread is still writing to. So the addon does
// not rely on it. The runtime never gets a pointer to a task, only its number; and the end of an environment
// waits until no task of it is executing, while everything that tasks use is still there. From then on their
// numbers mean nothing.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace gguf::binding {

class Environment;

/** One stay in the pool, and what follows it. Made and destroyed on the thread of its environment. */
class AsyncTask {
 public:
  virtual ~AsyncTask() = default;
  /** On a thread of the pool. */
  virtual void execute() noexcept = 0;
  /** Makes execute() return soon. Called while another thread may be in it, when the environment ends. */
  virtual void stop() noexcept {}
  /** On the environment's thread, after execute(); may run JavaScript. Not called once the environment has
   * ended. */
  virtual void complete() = 0;
};

/** The tasks of one environment; on its thread only. */
class AsyncTasks {
 public:
  explicit AsyncTasks(Environment& environment) : environment_(environment) {}
  /** Stops the tasks, waits until none is executing, and destroys them. Needs no memory. */
  ~AsyncTasks();
  AsyncTasks(const AsyncTasks&) = delete;
  AsyncTasks& operator=(const AsyncTasks&) = delete;

  /** Queues `task`; `name` is what async_hooks call it. Runs JavaScript (async_hooks). */
  void queue(std::unique_ptr<AsyncTask> task, const char* name);

 private:
  class Queued;
  class Registry;
  static Registry& registry();
  static void execute(napi_env env, void* number);
  static void complete(napi_env env, napi_status status, void* number);

  Environment& environment_;
  std::unordered_map<uintptr_t, std::shared_ptr<Queued>> queued_;  // by number
};

}  // namespace gguf::binding
