#include "test/native/core/allocation_meter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> g_allocated_bytes{0};

}  // namespace

// The other forms of new and delete call these.
void* operator new(size_t n_bytes) {
  g_allocated_bytes += n_bytes;
  if (void* memory = std::malloc(n_bytes > 0 ? n_bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace gguf::test {

size_t allocated_bytes() {
  return g_allocated_bytes;
}

}  // namespace gguf::test
