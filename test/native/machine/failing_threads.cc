#include "test/native/machine/failing_threads.h"

#include <atomic>

namespace {

std::atomic<bool> g_fail{false};
std::atomic<int> g_attempts{0};

}  // namespace

// Programs for the emulator are linked statically: there is one function of that name.
#if defined(__linux__) && !defined(GGUF_EMULATED)
#define GGUF_THREADS_CAN_FAIL

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GGUF_SANITIZER
#endif
#endif

using Start = void* (*)(void*);

#ifdef GGUF_SANITIZER
// A sanitizer's own, which has to know of every thread.
extern "C" int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, Start, void*);
#endif

/** In the place of the C library's, for the C++ library too. */
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     Start start, void* argument) noexcept {
  if (g_fail) {
    ++g_attempts;
    return EAGAIN;
  }
#ifdef GGUF_SANITIZER
  return __interceptor_pthread_create(thread, attributes, start, argument);
#else
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
#endif
}

#endif

namespace gguf::test {

#ifdef GGUF_THREADS_CAN_FAIL
const bool threads_can_fail = true;
#else
const bool threads_can_fail = false;
#endif

FailingThreads::FailingThreads() {
  g_attempts = 0;
  g_fail = true;
}

FailingThreads::~FailingThreads() {
  g_fail = false;
}

int FailingThreads::attempts() const {
  return g_attempts;
}

}  // namespace gguf::test
