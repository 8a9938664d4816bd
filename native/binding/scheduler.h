// Shares the threads of the pool among the jobs of an environment.
#pragma once

#include <napi.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <vector>

#include "machine/thread_slots.h"

namespace gguf::binding {

class Environment;
class Job;

/**
 * Runs jobs as tasks on Node's pool, each with helper threads. A task works for a slice of time and comes
 * back to the event loop, where progress is reported, cancellation and the end of the environment are
 * noticed, and the next task is chosen.
 *
 * Short jobs, of no more than a slice of work, come first, in the order in which they were started. Long ones
 * take turns with what is left. So that no short job waits for them, work on them ends with the next chunk
 * where a short job waits for threads, or one of the task is done; and they go on after the JavaScript that
 * waited for it, which may start another. So that short jobs cannot keep them from ending, every task does
 * chunks of them.
 *
 * Queueing a task (async_hooks), reporting progress and settling a job run JavaScript, which may start and
 * cancel jobs. So no reference into the lists of jobs is kept across these, and counts are right before they
 * begin.
 */
class Scheduler {
 public:
  explicit Scheduler(Environment& environment) : environment_(environment) {}
  /** When the tasks are gone; jobs that are not done are dropped. */
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /** Does not throw for lack of memory: that is the job's failure. */
  void start(std::shared_ptr<Job> job);
  void cancel(std::shared_ptr<Job> job);

 private:
  class Task;
  using Jobs = std::vector<std::shared_ptr<Job>>;
  using List = std::list<std::shared_ptr<Job>>;

  /** As many as have slots and work. Call it after everything that may have made work or given memory back.
   */
  void start_tasks();
  /** For jobs that wait while no task is under way, and none can be started: fails the next of them. False
   * where there is none. */
  bool fail_next(const std::exception_ptr& failure);
  /** Of tasks that worked, or were not queued after all, and of their threads. */
  void give_back_slots(int n_tasks, int n_threads);
  /** Makes `jobs` the next jobs that have work, in the order of their turns; returns how many chunks they
   * have. */
  uint64_t next_jobs(Jobs& jobs);
  /** The same of one list, which is short_jobs_ or long_jobs_; returns false where that has changed
   * meanwhile.
   */
  bool add_next(const List& list, Jobs& jobs, uint64_t& n_chunks);
  /** Where only long jobs are left: queues a turn of the event loop, after which they go on. Threads that
   * were woken before often take the processor of the JavaScript that waited for short ones, for
   * milliseconds. False where short jobs are left, or nothing is. */
  bool lets_javascript_run();
  /** Queues a task: a slice of work on `jobs` by `n_threads`, or (0) only a turn of the event loop. */
  void queue(Jobs jobs, int n_threads);
  /** Puts a long job that was worked on behind the others. */
  void end_turn(const std::shared_ptr<Job>& job) noexcept;
  List& list_of(const Job& job);
  /** Chunks of short jobs, or of long ones, that are enough for a task. */
  uint64_t enough_chunks() const;
  void task_done(Task& task);
  /** start_tasks() comes afterwards, for jobs that wait for the memory of this one. */
  void settle_if_done(std::shared_ptr<Job> job);
  void keep_scratch(std::vector<uint8_t> scratch) noexcept;
  void remove(const std::shared_ptr<Job>& job);
  bool can_run_javascript() const;

  Environment& environment_;
  ThreadSlots& slots_ = ThreadSlots::of_process();
  List short_jobs_;  // in the order in which they were started
  List long_jobs_;   // in the order of their turns
  /** Whether some of short_jobs_ wait for threads. Tasks read it. */
  std::atomic<bool> short_job_waits_{false};
  int n_tasks_ = 0;    // that work; each has a slot,
  int n_threads_ = 0;  // and so has each of their threads
  std::vector<std::vector<uint8_t>> spare_scratch_;
};

}  // namespace gguf::binding
