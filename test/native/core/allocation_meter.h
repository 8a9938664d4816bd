// How much memory `new` has been asked for, to test that a file's claims alone do not take any.
#pragma once

#include <cstddef>

namespace gguf::test {

/** Bytes that operator new was asked for, in this test program, so far. */
size_t allocated_bytes();

/** While it exists, this thread gets the next `n_more` allocations, and no memory from then on. Not
   under ThreadSanitizer, which has its own new. */
class OutOfMemory {
 public:
  explicit OutOfMemory(size_t n_more);
  ~OutOfMemory();
  OutOfMemory(const OutOfMemory&) = delete;
  OutOfMemory& operator=(const OutOfMemory&) = delete;
};

}  // namespace gguf::test
