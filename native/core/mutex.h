// A mutex whose rules Clang checks (-Wthread-safety, which `npm run lint` runs): what it guards is used only
// where it is locked. Standard libraries other than Clang's own do not annotate std::mutex. Clang checks no
// constructor and no destructor: those call functions that lock.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define GGUF_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define GGUF_THREAD_SAFETY(attribute)
#endif

/** Of a member: used only while the mutex is locked. */
#define GGUF_GUARDED_BY(mutex) GGUF_THREAD_SAFETY(guarded_by(mutex))
/** Of a function: called only while the mutex is locked. */
#define GGUF_REQUIRES(mutex) GGUF_THREAD_SAFETY(requires_capability(mutex))
/** Of a function that uses what is guarded without the lock; its comment says why it may. */
#define GGUF_NEEDS_NO_LOCK GGUF_THREAD_SAFETY(no_thread_safety_analysis)

namespace gguf {

class GGUF_THREAD_SAFETY(capability("mutex")) Mutex {
  friend class MutexLock;
  std::mutex mutex_;
};

/** Locks a mutex as long as it exists. */
class GGUF_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GGUF_THREAD_SAFETY(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  ~MutexLock() GGUF_THREAD_SAFETY(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  /** Waits until `condition` is notified, or for no reason; unlocked while it waits. */
  void wait(std::condition_variable& condition) { condition.wait(lock_); }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace gguf
