#include "machine/thread_slots.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "machine/processors.h"

namespace gguf {

namespace {

constexpr int kDefaultPoolSize = 4;

std::optional<int> pool_size_of_process() {
  const char* const text = std::getenv("UV_THREADPOOL_SIZE");
  if (text == nullptr) return std::nullopt;
  return pool_size_of(text);
}

}  // namespace

int pool_size_of(const char* setting) {
  constexpr uint32_t kMax = 1024;
  // libuv calls atoi, which is not defined for numbers that are too large, and makes the result unsigned.
  const auto size = static_cast<uint32_t>(std::strtol(setting, nullptr, 10));
  return static_cast<int>(std::clamp(size, uint32_t{1}, kMax));
}

ThreadSlots& ThreadSlots::of_process() {
  // Read once: the pool keeps the size that it had when it was first used.
  static ThreadSlots* const instance = new ThreadSlots(processors(), pool_size_of_process());
  return *instance;
}

ThreadSlots::ThreadSlots(int processors, std::optional<int> pool_size)
    : pool_size_(pool_size.value_or(kDefaultPoolSize)),
      tasks_limit_(std::max(1, pool_size_ - 1)),
      limit_(pool_size ? std::min(processors, tasks_limit_) : processors) {}

bool ThreadSlots::take_task(int held) {
  const MutexLock lock(mutex_);
  if (held > 0 && (n_tasks_ >= tasks_limit_ || !has_room_for_thread(held))) return false;
  ++n_tasks_;
  ++n_threads_;
  return true;
}

bool ThreadSlots::take_helper(int held) {
  const MutexLock lock(mutex_);
  if (!has_room_for_thread(held)) return false;
  ++n_threads_;
  return true;
}

bool ThreadSlots::has_room_for_thread(int held) const {
  const int share = std::max(1, limit_ / std::max(1, n_environments_));
  return held < share && n_threads_ < limit_;
}

void ThreadSlots::give_back(int n_tasks, int n_threads) {
  const MutexLock lock(mutex_);
  n_tasks_ -= n_tasks;
  n_threads_ -= n_threads;
}

void ThreadSlots::job_started(bool first_of_environment) {
  n_jobs_.fetch_add(1, std::memory_order_relaxed);
  if (!first_of_environment) return;
  const MutexLock lock(mutex_);
  ++n_environments_;
}

void ThreadSlots::job_ended(bool last_of_environment) {
  n_jobs_.fetch_sub(1, std::memory_order_relaxed);
  if (!last_of_environment) return;
  const MutexLock lock(mutex_);
  --n_environments_;
}

}  // namespace gguf
