// Threads that cannot be created.
#pragma once

namespace gguf::test {

/** Whether FailingThreads works here: on Linux, where a program can replace what the C library has for
 * creating threads. */
extern const bool threads_can_fail;

/** While it exists, no thread can be created. */
class FailingThreads {
 public:
  FailingThreads();
  ~FailingThreads();
  FailingThreads(const FailingThreads&) = delete;
  FailingThreads& operator=(const FailingThreads&) = delete;
  /** How often that was tried. */
  int attempts() const;
};

}  // namespace gguf::test
