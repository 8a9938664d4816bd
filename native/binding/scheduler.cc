#include "binding/scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "binding/async_tasks.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/job.h"

namespace gguf::binding {

namespace {

using Clock = std::chrono::steady_clock;

/** A slice while other jobs wait, or the event loop has something to do for this one. */
constexpr std::chrono::milliseconds kShortSlice{4};
/** A slice otherwise: a busy event loop then delays the work less, and the end of an environment still waits
 * only briefly. */
constexpr std::chrono::milliseconds kLongSlice{50};
/** A slice in which the work on a job was completed: its promise waits to be settled. */
constexpr std::chrono::milliseconds kSliceOfDoneJob{1};

/** About as many as a thread works on in a short slice. A job that has more is long. */
constexpr uint64_t kChunksOfSlice = 64;

bool is_long(const Job& job) {
  return job.work().n_chunks() > kChunksOfSlice;
}

}  // namespace

/** One stay in the pool: a slice of work on some jobs, one after the other. The thread of the pool has
 * helpers, which it wakes itself: threads that the event loop wakes at once, one after the other, often share
 * a core. */
class Scheduler::Task : public AsyncTask {
 public:
  Task(Scheduler& its_scheduler, Jobs its_jobs, int its_threads)
      : scheduler(its_scheduler), jobs(std::move(its_jobs)), n_threads(its_threads) {
    for (const auto& job : jobs) returns_often_ |= job->reports_progress() || job->copies_source();
    while (n_short_ < jobs.size() && !is_long(*jobs[n_short_])) ++n_short_;
  }

  void execute() noexcept override {
    if (n_threads == 0) return;
    const Clock::time_point start = Clock::now();
    std::atomic<bool> has_done_job{false}, has_done_short_job{false};
    const auto is_over = [&] { return Clock::now() - start >= slice(has_done_job); };
    const auto gives_way = [&] { return has_done_short_job || scheduler.short_job_waits_ || is_over(); };
    const auto work = [&](std::vector<uint8_t>& its_scratch) {
      for (size_t i = 0; i < n_short_ && !is_over(); ++i) {
        jobs[i]->work().work(its_scratch, is_over);
        if (jobs[i]->work().is_exhausted()) has_done_job = has_done_short_job = true;
      }
      for (size_t i = n_short_; i < jobs.size(); ++i) {
        jobs[i]->work().work(its_scratch, gives_way);
        if (jobs[i]->work().is_exhausted()) has_done_job = true;
        if (gives_way()) return;
      }
    };
    scheduler.environment_.helper_threads->run(n_threads - 1, scratch, work);
  }
  void stop() noexcept override {
    for (const auto& job : jobs) job->work().stop();
  }
  void complete() override { scheduler.task_done(*this); }
  bool has_short_jobs() const { return n_short_ > 0; }

  Scheduler& scheduler;
  const Jobs jobs;  // short ones, then long ones
  const int n_threads;
  std::vector<uint8_t> scratch;

 private:
  std::chrono::milliseconds slice(bool has_done_job) const {
    if (has_done_job) return kSliceOfDoneJob;
    const bool hurry = returns_often_ || scheduler.slots_.is_contended() || scheduler.slots_.is_pool_of_one();
    return hurry ? kShortSlice : kLongSlice;
  }

  size_t n_short_ = 0;          // how many of them are short
  bool returns_often_ = false;  // to report progress, or to copy more of a source
};

Scheduler::~Scheduler() {
  give_back_slots(n_tasks_, n_threads_);
  for (List* list : {&short_jobs_, &long_jobs_}) {
    while (!list->empty()) remove(std::shared_ptr<Job>(list->back()));
  }
}

void Scheduler::start(std::shared_ptr<Job> job) {
  // Settled already where JavaScript got hold of it while it was being made, and cancelled it.
  if (!job->is_settled()) {
    try {
      list_of(*job).push_back(job);
      slots_.job_started(short_jobs_.size() + long_jobs_.size() == 1);
    } catch (...) {
      job->fail(std::current_exception());
    }
  }
  settle_if_done(job);
  start_tasks();
  if (!is_long(*job) && job->in_flight == 0 && !job->is_settled()) short_job_waits_ = true;
}

void Scheduler::cancel(std::shared_ptr<Job> job) {
  job->cancel();
  settle_if_done(std::move(job));
  // Where others wait for what it gave back, a task is under way, whose end starts them.
}

void Scheduler::start_tasks() {
  // The slot first: jobs that are chosen and then find no slot would lose their turn.
  while (slots_.take_task(n_threads_)) {
    int n_threads = 1;
    ++n_tasks_;
    ++n_threads_;
    Jobs jobs;
    std::exception_ptr failure;
    try {
      const uint64_t n_chunks = next_jobs(jobs);
      if (jobs.empty()) return give_back_slots(1, n_threads);
      while (static_cast<uint64_t>(n_threads) < n_chunks && slots_.take_helper(n_threads_)) {
        ++n_threads;
        ++n_threads_;
      }
      queue(jobs, n_threads);
      continue;
    } catch (...) {
      failure = std::current_exception();
    }
    give_back_slots(1, n_threads);
    // JavaScript may have cancelled them when it heard of the task.
    for (const auto& job : jobs) settle_if_done(job);
    // The end of another task is the time to try again.
    if (n_tasks_ > 0 || !fail_next(failure)) return;
  }
}

bool Scheduler::fail_next(const std::exception_ptr& failure) {
  for (const List* list : {&short_jobs_, &long_jobs_}) {
    for (const auto& next : *list) {
      if (next->in_flight > 0 || next->is_settled()) continue;
      const std::shared_ptr<Job> job = next;
      job->fail(failure);
      settle_if_done(job);
      return true;
    }
  }
  return false;
}

void Scheduler::give_back_slots(int n_tasks, int n_threads) {
  n_tasks_ -= n_tasks;
  n_threads_ -= n_threads;
  slots_.give_back(n_tasks, n_threads);
}

Scheduler::List& Scheduler::list_of(const Job& job) {
  return is_long(job) ? long_jobs_ : short_jobs_;
}

uint64_t Scheduler::enough_chunks() const {
  return kChunksOfSlice * static_cast<uint64_t>(slots_.limit());
}

uint64_t Scheduler::next_jobs(Jobs& jobs) {
  for (;;) {
    jobs.clear();
    uint64_t n_chunks_of_short = 0, n_chunks_of_long = 0;
    if (!add_next(short_jobs_, jobs, n_chunks_of_short)) continue;
    short_job_waits_ = n_chunks_of_short >= enough_chunks();
    if (add_next(long_jobs_, jobs, n_chunks_of_long)) return n_chunks_of_short + n_chunks_of_long;
  }
}

bool Scheduler::add_next(const List& list, Jobs& jobs, uint64_t& n_chunks) {
  for (auto next = list.begin(); next != list.end() && n_chunks < enough_chunks(); ++next) {
    const std::shared_ptr<Job> job = *next;
    if (!job->feed()) {
      // Settled, it leaves the list, and gives back what others may have waited for.
      settle_if_done(job);
      return false;
    }
    if (job->has_work()) {
      n_chunks += job->useful_threads();
      jobs.push_back(job);
    } else if (!jobs.empty()) {
      break;  // it waits for memory, as do most of those behind it
    }
  }
  return true;
}

void Scheduler::queue(Jobs jobs, int n_threads) {
  auto task = std::make_unique<Task>(*this, jobs, n_threads);
  if (n_threads > 0 && !spare_scratch_.empty()) {
    task->scratch = std::move(spare_scratch_.back());
    spare_scratch_.pop_back();
  }
  // Counted before JavaScript can run, which then finds the jobs at work.
  for (const auto& job : jobs) ++job->in_flight;
  try {
    environment_.async_tasks.queue(std::move(task), "gguf-native dequantize");
  } catch (...) {
    for (const auto& job : jobs) --job->in_flight;
    throw;
  }
}

void Scheduler::keep_scratch(std::vector<uint8_t> scratch) noexcept {
  try {
    spare_scratch_.push_back(std::move(scratch));
  } catch (const std::bad_alloc&) {  // the next task makes another
  }
}

void Scheduler::task_done(Task& task) {
  for (const auto& job : task.jobs) --job->in_flight;
  if (task.n_threads > 0) {
    give_back_slots(1, task.n_threads);
    keep_scratch(std::move(task.scratch));
  }
  if (!can_run_javascript()) {
    // The environment is ending and waits for tasks: no more are started.
    task.stop();
    for (const auto& job : task.jobs) remove(job);
    return;
  }
  std::exception_ptr failure;  // which the other jobs do not share
  for (const auto& job : task.jobs) {
    try {
      end_turn(job);
      job->report();
      settle_if_done(job);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (!task.has_short_jobs() || !lets_javascript_run()) start_tasks();
  if (failure) std::rethrow_exception(failure);
}

bool Scheduler::lets_javascript_run() {
  if (!short_jobs_.empty() || long_jobs_.empty()) return false;
  try {
    queue({}, 0);
    return true;
  } catch (...) {  // no memory for a turn of the event loop: long jobs go on without
    return false;
  }
}

void Scheduler::end_turn(const std::shared_ptr<Job>& job) noexcept {
  const uint64_t n_claimed = job->work().claimed();
  if (!is_long(*job) || n_claimed == job->claimed_before) return;
  job->claimed_before = n_claimed;
  const auto found = std::find(long_jobs_.begin(), long_jobs_.end(), job);
  if (found != long_jobs_.end()) long_jobs_.splice(long_jobs_.end(), long_jobs_, found);
}

void Scheduler::settle_if_done(std::shared_ptr<Job> job) {
  if (job->is_settled() || job->in_flight > 0 || !job->work().is_exhausted()) return;
  while (!job->finish()) {
    try {
      return queue({job}, 0);
    } catch (...) {  // no memory for a turn of the event loop: goes on without
    }
  }
  remove(job);
}

void Scheduler::remove(const std::shared_ptr<Job>& job) {
  List& list = list_of(*job);
  const auto found = std::find(list.begin(), list.end(), job);
  if (found == list.end()) return;
  list.erase(found);
  const bool is_last = short_jobs_.empty() && long_jobs_.empty();
  if (is_last) spare_scratch_.clear();
  slots_.job_ended(is_last);
}

bool Scheduler::can_run_javascript() const {
  // Calls that could run JavaScript are refused while the environment ends; this one has no effect.
  bool has;
  const Napi::Object global = Napi::Env(environment_.env).Global();
  return napi_has_named_property(environment_.env, global, "undefined", &has) == napi_ok;
}

}  // namespace gguf::binding
