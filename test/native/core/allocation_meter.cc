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
std::atomic<bool> g_is_felt{false};

/** Allocations that are left; nothing limits them where there is no limit. */
struct Limit {
  std::atomic<bool> exists{false};
  std::atomic<int64_t> left{0};

  /** Whether one more is too many. */
  bool ends() { return exists && left.fetch_sub(1) <= 0; }
};
Limit g_of_all;
thread_local Limit g_of_thread;

[[maybe_unused]] bool memory_ends() {
  const bool ends = g_of_thread.ends() || g_of_all.ends();
  if (ends) g_is_felt = true;
  return ends;
}

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
  if (memory_ends()) throw std::bad_alloc();
  if (void* memory = std::malloc(n_bytes > 0 ? n_bytes : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t n_bytes, std::align_val_t alignment) {
  g_allocated_bytes += n_bytes;
  if (memory_ends()) throw std::bad_alloc();
  const size_t unit = static_cast<size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (n_bytes / unit + 1) * unit)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
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

#ifdef GGUF_THREAD_SANITIZER
const bool memory_can_end = false;
#else
const bool memory_can_end = true;
#endif

OutOfMemory::OutOfMemory(size_t n_more, On on) : on_(on) {
  g_is_felt = false;
  Limit& limit = on_ == On::kAllThreads ? g_of_all : g_of_thread;
  limit.left = static_cast<int64_t>(n_more);
  limit.exists = true;
}

OutOfMemory::~OutOfMemory() {
  (on_ == On::kAllThreads ? g_of_all : g_of_thread).exists = false;
}

bool OutOfMemory::was_felt() const {
  return g_is_felt;
}

}  // namespace gguf::test
