// How much memory `new` has been asked for, to test that a file's claims alone do not take any.
#pragma once

#include <cstddef>

namespace gguf::test {

/** Bytes that operator new was asked for, in this test program, so far. */
size_t allocated_bytes();

/** Whether OutOfMemory works: not under ThreadSanitizer, which has its own new. */
extern const bool memory_can_end;

/** While it exists, this thread, or all of them, get the next `n_more` allocations, and no memory from then
 * on. */
class OutOfMemory {
 public:
  enum class On { kThisThread, kAllThreads };
  explicit OutOfMemory(size_t n_more, On on = On::kThisThread);
  ~OutOfMemory();
  /** Whether an allocation has failed, on any thread. */
  bool was_felt() const;
  OutOfMemory(const OutOfMemory&) = delete;
  OutOfMemory& operator=(const OutOfMemory&) = delete;

 private:
  const On on_;
};

}  // namespace gguf::test
