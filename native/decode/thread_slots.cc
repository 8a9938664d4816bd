#include "decode/thread_slots.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace gguf::thread_slots {

namespace {

// Constant-initialised and trivially destroyed: tasks may still run while the process exits.
std::mutex mutex;
int in_flight = 0;
int environments = 0;
std::atomic<int> jobs{0};

/** As libuv reads it. */
int pool_size() {
  constexpr int kDefault = 4;
  constexpr int kMax = 1024;
  const char* const text = std::getenv("UV_THREADPOOL_SIZE");
  if (text == nullptr) return kDefault;
  return std::clamp(std::atoi(text), 1, kMax);
}

/** Read once: the pool keeps the size that it had when it was first used. */
int known_pool_size() {
  static const int size = pool_size();
  return size;
}

}  // namespace

int limit() {
  static const int tasks = [] {
    const int hardware = static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, std::min(hardware, known_pool_size() - 1));
  }();
  return tasks;
}

bool is_pool_of_one() {
  return known_pool_size() == 1;
}

bool take(int held) {
  const std::lock_guard<std::mutex> lock(mutex);
  const int share = std::max(1, limit() / std::max(1, environments));
  if (held > 0 && (held >= share || in_flight >= limit())) return false;
  ++in_flight;
  return true;
}

void give_back() {
  const std::lock_guard<std::mutex> lock(mutex);
  --in_flight;
}

void job_started(bool first_of_environment) {
  jobs.fetch_add(1, std::memory_order_relaxed);
  if (!first_of_environment) return;
  const std::lock_guard<std::mutex> lock(mutex);
  ++environments;
}

void job_ended(bool last_of_environment) {
  jobs.fetch_sub(1, std::memory_order_relaxed);
  if (!last_of_environment) return;
  const std::lock_guard<std::mutex> lock(mutex);
  --environments;
}

bool is_contended() {
  return jobs.load(std::memory_order_relaxed) > 1;
}

}  // namespace gguf::thread_slots
