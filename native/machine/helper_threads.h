// Threads that help another with its work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace gguf {

/** Frees scratch that is larger, because rows are long, than is worth keeping for the next call. */
inline void drop_large_scratch(std::vector<uint8_t>& scratch) {
  constexpr size_t kMaxKept = size_t{4} << 20;
  if (scratch.size() > kMaxKept) std::vector<uint8_t>().swap(scratch);
}

/**
 * One pool for the process, shared by all environments: each keeps it, and with the last of them it ends.
 * Threads are started when they are first wanted. A thread without work looks out for more for some
 * microseconds before it sleeps: calls that follow each other, as those of a model do, then find it awake.
 */
class HelperThreads {
 public:
  /** The pool of the process. Any thread. */
  static std::shared_ptr<HelperThreads> shared();
  HelperThreads() = default;
  /** Ends the threads; nobody is in run(). */
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  /**
   * Calls `work(scratch)` on this thread, with `scratch`, and on up to `n_helpers` others at the same time,
   * with scratch of their own: as many as are free before the call on this thread returns. Returns when all
   * have returned. Any thread, any number at the same time. `work` does not throw.
   */
  template <class Work>
  void run(int n_helpers, std::vector<uint8_t>& scratch, const Work& work) noexcept {
    if (n_helpers <= 0) return work(scratch);
    const auto call_work = [](const void* its_work, std::vector<uint8_t>& its_scratch) {
      (*static_cast<const Work*>(its_work))(its_scratch);
    };
    Call call{call_work, &work, n_helpers};
    open(call);
    work(scratch);
    close(call);
  }

  /** Whether a call under way wants more helpers than have joined it. Any thread. */
  bool wants_help() const { return n_wanted_.load(std::memory_order_relaxed) > 0; }

  /** Ends the threads; from now on every caller works alone. */
  void stop();

 private:
  /** One run() under way, on the stack of its caller. */
  struct Call {
    void (*const work)(const void*, std::vector<uint8_t>&);
    const void* const argument;
    int wanted;                  // helpers that may still join; under the lock of the pool
    std::atomic<int> active{0};  // that have joined and not returned; the last thing they touch

    Call(void (*its_work)(const void*, std::vector<uint8_t>&), const void* its_argument, int n_helpers)
        : work(its_work), argument(its_argument), wanted(n_helpers) {}
  };

  void open(Call& call) noexcept;
  void close(Call& call) noexcept;
  /** How long no thread is started after one could not be: trying takes time, and everyone waits for the
   * lock. */
  static constexpr std::chrono::seconds kRetryTime{1};

  /** So that there are `n`, and `n` that are in no call as far as so many threads run at the same time. */
  void start_threads(int n) noexcept GGUF_REQUIRES(mutex_);
  void help() noexcept;
  /** Joins the next call that wants a helper, and sleeps until there is one; nullptr once threads are to end.
   */
  Call* join_call() noexcept;
  /** The call may be gone afterwards. */
  void leave_call(Call& call) noexcept;
  /** The call that a helper joins next; nullptr where none wants one. */
  Call* next_call() const GGUF_REQUIRES(mutex_);
  void watch_for_calls() const;

  Mutex mutex_;
  std::condition_variable wake_, returned_;
  std::vector<std::thread> threads_ GGUF_GUARDED_BY(mutex_);
  std::vector<Call*> calls_ GGUF_GUARDED_BY(mutex_);
  int n_sleeping_ GGUF_GUARDED_BY(mutex_) = 0;
  int n_in_calls_ GGUF_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point next_start_ GGUF_GUARDED_BY(mutex_){};  // of threads
  std::atomic<int> n_wanted_{0};                                                // over all calls
  std::atomic<bool> stopping_{false};
};

}  // namespace gguf
