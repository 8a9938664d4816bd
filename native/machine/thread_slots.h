// How many threads do asynchronous work, over all environments of the process.
#pragma once

#include <atomic>
#include <optional>

#include "core/mutex.h"

namespace gguf {

/** How many threads Node's pool has where UV_THREADPOOL_SIZE is `setting`: as libuv reads it. */
int pool_size_of(const char* setting);

class ThreadSlots {
 public:
  /** Those of the process. Never destroyed: tasks may still run while it exits. */
  static ThreadSlots& of_process();

  /**
   * @param processors how many threads run at the same time
   * @param pool_size how many threads Node's pool has (UV_THREADPOOL_SIZE); 4 if that is not set
   */
  ThreadSlots(int processors, std::optional<int> pool_size);

  /**
   * Most threads at work: as many as run at the same time, or fewer where UV_THREADPOOL_SIZE is set: one less
   * than that, and at least one.
   */
  int limit() const { return limit_; }

  /** Whether the pool has only one thread, so that all other work waits while a task runs. */
  bool is_pool_of_one() const { return pool_size_ == 1; }

  /**
   * Takes the slot of a task, with one thread, for an environment that has `held` threads at work already.
   * The first is always granted, so that no environment waits for another. Otherwise threads are shared
   * evenly among the environments that have jobs, and one thread of Node's pool stays free for the file
   * system and DNS work of the application, as long as it has more than one. So the limits are exceeded only
   * where there are more environments with jobs than slots.
   */
  bool take_task(int held);
  /** Takes one thread more for a task. */
  bool take_helper(int held);
  /** Gives back the slots of tasks, and those of all their threads. */
  void give_back(int n_tasks, int n_threads);

  /** Counts the jobs under way; an environment announces its first and its last. */
  void job_started(bool first_of_environment);
  void job_ended(bool last_of_environment);

  /** Whether more than one job is under way. Any thread. */
  bool is_contended() const { return n_jobs_.load(std::memory_order_relaxed) > 1; }

 private:
  bool has_room_for_thread(int held) const GGUF_REQUIRES(mutex_);

  const int pool_size_;
  const int tasks_limit_;
  const int limit_;
  Mutex mutex_;
  int n_threads_ GGUF_GUARDED_BY(mutex_) = 0;
  int n_tasks_ GGUF_GUARDED_BY(mutex_) = 0;
  int n_environments_ GGUF_GUARDED_BY(mutex_) = 0;  // that have jobs
  std::atomic<int> n_jobs_{0};
};

}  // namespace gguf
