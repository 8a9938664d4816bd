// Shares the threads of the pool among the jobs of an environment.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "decode/thread_slots.h"

namespace gguf::binding {

class Environment;
class Job;

/**
 * Runs jobs as tasks on Node's pool, each with helper threads. A task works for a slice of time and comes
 * back to the event loop, where progress is reported, cancellation and the end of the environment are
 * noticed, and the next task is chosen: jobs take turns.
 *
 * Queueing a task (async_hooks), reporting progress and settling a job run JavaScript, which may start and
 * cancel jobs. So no reference into `jobs_` is kept across these, and counts are right before they begin.
 */
class Scheduler {
 public:
  explicit Scheduler(Environment& environment) : environment_(environment) {}
  /** When the tasks are gone; jobs that are not done are dropped. */
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void start(std::shared_ptr<Job> job);
  void cancel(std::shared_ptr<Job> job);

 private:
  class Task;

  void start_tasks();
  /** Of tasks that worked, or were not queued after all, and of their threads. */
  void give_back_slots(int n_tasks, int n_threads);
  /** The next jobs that have work, taking turns, and how many chunks they have. */
  std::vector<std::shared_ptr<Job>> next_jobs(uint64_t* n_chunks);
  /** Queues a task: a slice of work on `jobs` by `n_threads`, or (0) only a turn of the event loop. */
  void queue(std::vector<std::shared_ptr<Job>> jobs, int n_threads);
  void task_done(Task& task);
  void settle_if_done(std::shared_ptr<Job> job);
  void remove(const std::shared_ptr<Job>& job);
  bool can_run_javascript() const;

  Environment& environment_;
  ThreadSlots& slots_ = ThreadSlots::of_process();
  std::vector<std::shared_ptr<Job>> jobs_;
  size_t next_ = 0;    // position of the job whose turn it is, modulo their number
  int n_tasks_ = 0;    // that work; each has a slot,
  int n_threads_ = 0;  // and so has each of their threads
  std::vector<std::vector<uint8_t>> spare_scratch_;
};

}  // namespace gguf::binding
