#include "test/native/core/allocation_meter.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GGUF_THREAD_SANITIZER
#endif
#endif

namespace {

std::atomic<size_t> g_allocated_bytes{0};
thread_local size_t g_left = SIZE_MAX;  // allocations of this thread

}  // namespace

#ifdef GGUF_THREAD_SANITIZER

// It defines new and delete itself, and calls this.
extern "C" __attribute__((no_sanitize("thread"))) void __sanitizer_malloc_hook(const volatile void*,
                                                                               size_t n_bytes) {
  __atomic_fetch_add(reinterpret_cast<size_t*>(&g_allocated_bytes), n_bytes, __ATOMIC_RELAXED);
}
extern "C" void __sanitizer_free_hook(const volatile void*) {}

#else

// The other forms of new and delete call these.
void* operator new(size_t n_bytes) {
  g_allocated_bytes += n_bytes;
  if (g_left == 0) throw std::bad_alloc();
  if (g_left != SIZE_MAX) --g_left;
  if (void* memory = std::malloc(n_bytes > 0 ? n_bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

#endif

namespace gguf::test {

size_t allocated_bytes() {
  return g_allocated_bytes;
}

OutOfMemory::OutOfMemory(size_t n_more) {
  g_left = n_more;
}

OutOfMemory::~OutOfMemory() {
  g_left = SIZE_MAX;
}

}  // namespace gguf::test
