#include "binding/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "binding/async_tasks.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "binding/job.h"
#include "decode/thread_slots.h"

namespace gguf::binding {

namespace {

using Clock = std::chrono::steady_clock;

/** A slice while other jobs wait, or the event loop has something to do for this one. */
constexpr std::chrono::milliseconds kShortSlice{4};
/** A slice otherwise: a busy event loop then delays the work less, and the end of an environment still waits
 * only briefly. */
constexpr std::chrono::milliseconds kLongSlice{50};

}  // namespace

/** One stay in the pool. */
class Scheduler::Task : public AsyncTask {
 public:
  Task(Scheduler& its_scheduler, std::shared_ptr<Job> its_job, bool its_works)
      : scheduler(its_scheduler),
        job(std::move(its_job)),
        works(its_works),
        returns_often_(job->reports_progress() || job->copies_source()) {}

  void execute() noexcept override {
    if (!works) return;
    const Clock::time_point start = Clock::now();
    job->work().work(scratch, [&] {
      const Clock::duration worked = Clock::now() - start;
      const bool hurry = returns_often_ || thread_slots::is_contended() || thread_slots::is_pool_of_one();
      return worked >= (hurry ? kShortSlice : kLongSlice);
    });
  }
  void stop() noexcept override { job->work().stop(); }
  void complete() override { scheduler.task_done(*this); }

  Scheduler& scheduler;
  const std::shared_ptr<Job> job;
  const bool works;
  std::vector<uint8_t> scratch;

 private:
  const bool returns_often_;  // to report progress, or to copy more of the source
};

Scheduler::~Scheduler() {
  while (in_flight_ > 0) give_back_slot();
  while (!jobs_.empty()) remove(std::shared_ptr<Job>(jobs_.back()));
}

void Scheduler::start(std::shared_ptr<Job> job) {
  jobs_.push_back(job);
  thread_slots::job_started(jobs_.size() == 1);
  start_tasks();
  settle_if_done(std::move(job));
}

void Scheduler::cancel(std::shared_ptr<Job> job) {
  job->cancel();
  settle_if_done(std::move(job));
  start_tasks();  // of jobs that waited for the memory of this one
}

void Scheduler::start_tasks() {
  // The slot first: a job that is chosen and then finds no slot would lose its turn.
  while (thread_slots::take(in_flight_)) {
    ++in_flight_;
    try {
      std::shared_ptr<Job> job = next_job();
      if (job == nullptr) return give_back_slot();
      queue(std::move(job), true);
    } catch (...) {
      give_back_slot();
      throw;
    }
  }
}

void Scheduler::give_back_slot() {
  --in_flight_;
  thread_slots::give_back();
}

std::shared_ptr<Job> Scheduler::next_job() {
  for (size_t tried = 0; tried < jobs_.size(); ++tried) {
    next_ = next_ + 1 < jobs_.size() ? next_ + 1 : 0;
    std::shared_ptr<Job> job = jobs_[next_];
    // A job that has failed and has no task gets one, which settles it.
    if (!job->feed() && job->in_flight == 0) queue(job, false);
    if (job->has_work()) return job;
  }
  return nullptr;
}

void Scheduler::queue(std::shared_ptr<Job> job, bool works) {
  auto task = std::make_unique<Task>(*this, job, works);
  if (works && !spare_scratch_.empty()) {
    task->scratch = std::move(spare_scratch_.back());
    spare_scratch_.pop_back();
  }
  // Counted before JavaScript can run, which then finds the job at work.
  ++job->in_flight;
  try {
    environment_.async_tasks.queue(std::move(task), "gguf-native dequantize");
  } catch (...) {
    --job->in_flight;
    throw;
  }
}

void Scheduler::task_done(Task& task) {
  --task.job->in_flight;
  if (task.works) {
    give_back_slot();
    spare_scratch_.push_back(std::move(task.scratch));
  }
  if (!can_run_javascript()) {
    // The environment is ending and waits for tasks: no more are started.
    task.job->work().stop();
    remove(task.job);
    return;
  }
  task.job->report();
  settle_if_done(task.job);
  start_tasks();
}

void Scheduler::settle_if_done(std::shared_ptr<Job> job) {
  if (job->is_settled() || job->in_flight > 0 || !job->work().is_exhausted()) return;
  if (job->finish()) {
    remove(job);
  } else {
    queue(std::move(job), false);
  }
}

void Scheduler::remove(const std::shared_ptr<Job>& job) {
  const auto found = std::find(jobs_.begin(), jobs_.end(), job);
  if (found == jobs_.end()) return;
  jobs_.erase(found);
  if (jobs_.empty()) spare_scratch_.clear();
  thread_slots::job_ended(jobs_.empty());
}

bool Scheduler::can_run_javascript() const {
  // Calls that could run JavaScript are refused while the environment ends; this one has no effect.
  bool has;
  const Napi::Object global = Napi::Env(environment_.env).Global();
  return napi_has_named_property(environment_.env, global, "undefined", &has) == napi_ok;
}

}  // namespace gguf::binding
