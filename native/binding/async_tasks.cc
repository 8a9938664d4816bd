#include "binding/async_tasks.h"

#include <unordered_map>
#include <utility>

#include "binding/environment.h"
#include "binding/errors.h"
#include "core/mutex.h"

namespace gguf::binding {

class AsyncTasks::Queued {
 public:
  Queued(AsyncTasks& its_owner, std::unique_ptr<AsyncTask> task) : owner(its_owner), task_(std::move(task)) {}

  /** Nothing where the task was taken. */
  void execute() noexcept {
    const MutexLock lock(executing_);
    if (task_ != nullptr) task_->execute();
  }

  /** Needs no lock, which a thread that executes holds: only the thread that calls this takes the task. */
  void stop() noexcept GGUF_NEEDS_NO_LOCK { task_->stop(); }

  /** Takes the task, when no thread executes it. */
  std::unique_ptr<AsyncTask> take() {
    const MutexLock lock(executing_);
    return std::move(task_);
  }

  AsyncTasks& owner;
  napi_async_work work = nullptr;

 private:
  Mutex executing_;  // locked while the task executes
  std::unique_ptr<AsyncTask> task_ GGUF_GUARDED_BY(executing_);
};

/** The tasks of all environments. */
class AsyncTasks::Registry {
 public:
  uintptr_t add(std::shared_ptr<Queued> queued) {
    const MutexLock lock(mutex_);
    // On a 32-bit system numbers can come round again, and 0 is no number.
    while (++last_number_ == 0 || by_number_.count(last_number_) != 0) {
    }
    by_number_.emplace(last_number_, std::move(queued));
    return last_number_;
  }

  /** nullptr where the task is over, or its environment. */
  std::shared_ptr<Queued> find(uintptr_t number) {
    const MutexLock lock(mutex_);
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : found->second;
  }

  /** The same, and forgets it. */
  std::shared_ptr<Queued> take(uintptr_t number) {
    const MutexLock lock(mutex_);
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return nullptr;
    std::shared_ptr<Queued> queued = std::move(found->second);
    by_number_.erase(found);
    return queued;
  }

 private:
  Mutex mutex_;
  std::unordered_map<uintptr_t, std::shared_ptr<Queued>> by_number_ GGUF_GUARDED_BY(mutex_);
  uintptr_t last_number_ GGUF_GUARDED_BY(mutex_) = 0;
};

/** Never destroyed: threads of the pool may still run while the process exits. */
AsyncTasks::Registry& AsyncTasks::registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

AsyncTasks::~AsyncTasks() {
  for (const auto& [number, queued] : queued_) registry().take(number);
  for (const auto& [number, queued] : queued_) queued->stop();
  for (const auto& [number, queued] : queued_) queued->take();
}

void AsyncTasks::queue(std::unique_ptr<AsyncTask> task, const char* name) {
  const napi_env env = environment_.env;
  const auto queued = std::make_shared<Queued>(*this, std::move(task));
  // Forgets the task again unless it is queued.
  struct Entry {
    AsyncTasks& tasks;
    const uintptr_t number;
    bool is_queued = false;
    ~Entry() {
      if (is_queued) return;
      const std::shared_ptr<Queued> unqueued = registry().take(number);
      if (unqueued->work != nullptr) napi_delete_async_work(tasks.environment_.env, unqueued->work);
      tasks.queued_.erase(number);
    }
  } entry{*this, registry().add(queued)};
  const uintptr_t number = entry.number;
  queued_.emplace(number, queued);

  const Napi::HandleScope scope(env);
  napi_value resource_name;
  check(env, napi_create_string_latin1(env, name, NAPI_AUTO_LENGTH, &resource_name));
  void* const data = reinterpret_cast<void*>(number);
  check(env, napi_create_async_work(env, nullptr, resource_name, execute, complete, data, &queued->work));
  check(env, napi_queue_async_work(env, queued->work));
  entry.is_queued = true;
}

void AsyncTasks::execute(napi_env, void* number) {
  const std::shared_ptr<Queued> queued = registry().find(reinterpret_cast<uintptr_t>(number));
  if (queued == nullptr) return;
  queued->execute();
}

void AsyncTasks::complete(napi_env env, napi_status, void* number) {
  const std::shared_ptr<Queued> queued = registry().take(reinterpret_cast<uintptr_t>(number));
  if (queued == nullptr) return;  // the environment has ended: not even `env` can be used
  AsyncTasks& tasks = queued->owner;
  tasks.queued_.erase(reinterpret_cast<uintptr_t>(number));
  napi_delete_async_work(env, queued->work);
  const std::unique_ptr<AsyncTask> task = queued->take();
  try {
    task->complete();
  } catch (...) {
    leave_pending(tasks.environment_);
  }
}

}  // namespace gguf::binding
