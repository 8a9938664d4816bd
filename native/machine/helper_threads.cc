#include "machine/helper_threads.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "machine/processors.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace gguf {

namespace {

using Clock = std::chrono::steady_clock;

/**
 * How long a thread looks out for work, or for the end of work, before it sleeps. Waking it takes 50 us; a
 * model does other things for 100 us between two products of a layer.
 */
constexpr std::chrono::microseconds kWatchTime{200};

/** More threads than any product keeps busy. */
constexpr int kMaxThreads = 256;

/** Tells the processor that this thread only waits. */
void pause_briefly() {
#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
  _mm_pause();
#elif defined(_MSC_VER) && defined(_M_ARM64)
  __yield();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/** Waits until `is_done` or for kWatchTime. */
template <class IsDone>
void watch(IsDone is_done) {
  constexpr int kPauses = 16;  // between two looks at the clock
  const Clock::time_point end = Clock::now() + kWatchTime;
  do {
    for (int i = 0; i < kPauses; ++i) {
      if (is_done()) return;
      pause_briefly();
    }
  } while (Clock::now() < end);
}

struct Shared {
  Mutex mutex;
  std::weak_ptr<HelperThreads> pool GGUF_GUARDED_BY(mutex);
};

/** Never destroyed: environments may still end while the process exits. */
Shared& shared_pool() {
  static Shared* const instance = new Shared;
  return *instance;
}

#ifndef _WIN32
/** nullptr where no environment keeps it. */
std::shared_ptr<HelperThreads> existing_pool() {
  const MutexLock lock(shared_pool().mutex);
  return shared_pool().pool.lock();
}

/** For a process that exits without ending its environments. Windows has ended all threads by then. */
struct StopAtExit {
  StopAtExit() = default;
  StopAtExit(const StopAtExit&) = delete;
  StopAtExit& operator=(const StopAtExit&) = delete;
  ~StopAtExit() {
    if (const auto pool = existing_pool()) pool->stop();
  }
};
#endif

}  // namespace

std::shared_ptr<HelperThreads> HelperThreads::shared() {
  const MutexLock lock(shared_pool().mutex);
  std::shared_ptr<HelperThreads> pool = shared_pool().pool.lock();
  if (pool == nullptr) {
    pool = std::make_shared<HelperThreads>();
    shared_pool().pool = pool;
#ifndef _WIN32
    static const StopAtExit stop_at_exit;
#endif
  }
  return pool;
}

HelperThreads::~HelperThreads() {
  stop();
}

void HelperThreads::stop() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void HelperThreads::open(Call& call) noexcept {
  int n_to_wake = 0;
  {
    const MutexLock lock(mutex_);
    start_threads(std::min(call.wanted, kMaxThreads));
    if (threads_.empty()) {
      call.wanted = 0;
      return;
    }
    try {
      calls_.push_back(&call);
    } catch (const std::bad_alloc&) {
      call.wanted = 0;
      return;
    }
    n_wanted_.fetch_add(call.wanted, std::memory_order_relaxed);
    n_to_wake = std::min(call.wanted, n_sleeping_);
  }
  while (n_to_wake-- > 0) wake_.notify_one();
}

void HelperThreads::start_threads(int n) noexcept {
  if (stopping_.load(std::memory_order_relaxed)) return;
  try {
    n = std::max(n, std::min(n_in_calls_ + n, processors()));
    if (static_cast<int>(threads_.size()) >= n || Clock::now() < next_start_) return;
    while (static_cast<int>(threads_.size()) < n) threads_.emplace_back([this] { help(); });
  } catch (const std::exception&) {
    // The system has no more threads, or no memory for one: with those that there are.
    next_start_ = Clock::now() + kRetryTime;
  }
}

void HelperThreads::close(Call& call) noexcept {
  const auto have_returned = [&] { return call.active.load(std::memory_order_acquire) == 0; };
  {
    const MutexLock lock(mutex_);
    const auto found = std::find(calls_.begin(), calls_.end(), &call);
    if (found != calls_.end()) calls_.erase(found);
    n_wanted_.fetch_sub(call.wanted, std::memory_order_relaxed);
    call.wanted = 0;
  }
  // Those that have joined are at their last chunks.
  watch(have_returned);
  if (have_returned()) return;
  MutexLock lock(mutex_);
  while (!have_returned()) lock.wait(returned_);
}

HelperThreads::Call* HelperThreads::next_call() const {
  const auto found =
      std::find_if(calls_.begin(), calls_.end(), [](const Call* call) { return call->wanted > 0; });
  return found == calls_.end() ? nullptr : *found;
}

void HelperThreads::watch_for_calls() const {
  watch([this] { return wants_help() || stopping_.load(std::memory_order_relaxed); });
}

HelperThreads::Call* HelperThreads::join_call() noexcept {
  MutexLock lock(mutex_);
  Call* call = next_call();
  while (call == nullptr && !stopping_.load(std::memory_order_relaxed)) {
    ++n_sleeping_;
    lock.wait(wake_);
    --n_sleeping_;
    call = next_call();
  }
  if (call == nullptr) return nullptr;
  --call->wanted;
  n_wanted_.fetch_sub(1, std::memory_order_relaxed);
  call->active.fetch_add(1, std::memory_order_relaxed);
  ++n_in_calls_;
  return call;
}

void HelperThreads::leave_call(Call& call) noexcept {
  bool is_last;
  {
    const MutexLock lock(mutex_);
    --n_in_calls_;
    is_last = call.active.fetch_sub(1, std::memory_order_release) == 1;
  }
  if (is_last) returned_.notify_all();
}

void HelperThreads::help() noexcept {
  std::vector<uint8_t> scratch;
  for (;;) {
    watch_for_calls();
    Call* const call = join_call();
    if (call == nullptr) return;
    call->work(call->argument, scratch);
    drop_large_scratch(scratch);
    leave_call(*call);
  }
}

}  // namespace gguf
