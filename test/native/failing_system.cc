// Linked into the addon for a test, in the place of functions that it calls: memory, pages, threads and the
// queue of Node's pool, each of which fails when JavaScript says so. The exports get three functions more:
//
//   inject(kinds, after, times, where)   fails calls of these kinds, `times` of them, once `after` of them
//   are
//                                        through; where: 0 on all threads, 1 on this one, 2 on the others.
//                                        Returns how many the last inject() has failed
//   liveBytes()                          what operator new has handed out and not got back
//   liveWork()                           pieces of asynchronous work that were made and not deleted
#include <dlfcn.h>
#include <malloc.h>
#include <node_api.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

enum Kind : int { kMemory = 1, kPages = 2, kThreads = 4, kQueue = 8 };

std::atomic<int> g_kinds{0}, g_where{0};
std::atomic<int64_t> g_after{0}, g_times{0}, g_injected{0}, g_live_bytes{0}, g_live_work{0};
pthread_t g_javascript_thread;

/** Whether this call is to fail. */
bool fails(Kind kind) {
  if ((g_kinds & kind) == 0) return false;
  const int where = g_where;
  if (where != 0 && (pthread_equal(pthread_self(), g_javascript_thread) != 0) != (where == 1)) return false;
  if (g_after.fetch_sub(1) > 0 || g_times.fetch_sub(1) <= 0) return false;
  ++g_injected;
  return true;
}

void* counted(void* memory) {
  if (memory != nullptr) g_live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void* allocate(size_t n_bytes, size_t alignment) noexcept {
  if (fails(kMemory)) return nullptr;
  if (n_bytes == 0) n_bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return counted(std::malloc(n_bytes));
  return counted(std::aligned_alloc(alignment, (n_bytes + alignment - 1) / alignment * alignment));
}

void* allocate_or_throw(size_t n_bytes, size_t alignment) {
  if (void* const memory = allocate(n_bytes, alignment)) return memory;
  throw std::bad_alloc();
}

void release(void* memory) noexcept {
  if (memory != nullptr) g_live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

/** The function of this name that the addon would call without this file. */
template <class Function>
Function* real(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

// The forms for arrays call these.
void* operator new(size_t n_bytes) {
  return allocate_or_throw(n_bytes, 1);
}
void* operator new(size_t n_bytes, std::align_val_t alignment) {
  return allocate_or_throw(n_bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t n_bytes, const std::nothrow_t&) noexcept {
  return allocate(n_bytes, 1);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  release(memory);
}

extern "C" {

void* mmap64(void* address, size_t n_bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  if (fails(kPages)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, n_bytes, protection, flags, fd, offset));
}
void* mmap(void* address, size_t n_bytes, int protection, int flags, int fd, off_t offset) noexcept {
  return mmap64(address, n_bytes, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  if (fails(kThreads)) return EAGAIN;
  return real(&pthread_create, "pthread_create")(thread, attributes, start, argument);
}

napi_status napi_create_async_work(napi_env env, napi_value resource, napi_value name,
                                   napi_async_execute_callback execute, napi_async_complete_callback complete,
                                   void* data, napi_async_work* work) {
  const auto status = real(&napi_create_async_work, "napi_create_async_work")(env, resource, name, execute,
                                                                              complete, data, work);
  if (status == napi_ok) ++g_live_work;
  return status;
}
napi_status napi_delete_async_work(napi_env env, napi_async_work work) {
  --g_live_work;
  return real(&napi_delete_async_work, "napi_delete_async_work")(env, work);
}
napi_status napi_queue_async_work(napi_env env, napi_async_work work) {
  if (fails(kQueue)) return napi_generic_failure;
  return real(&napi_queue_async_work, "napi_queue_async_work")(env, work);
}

}  // extern "C"

namespace {

napi_value number(napi_env env, int64_t value) {
  napi_value result;
  napi_create_int64(env, value, &result);
  return result;
}

napi_value inject(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value values[4];
  int64_t arguments[4] = {};
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  for (size_t i = 0; i < count; ++i) napi_get_value_int64(env, values[i], &arguments[i]);
  g_kinds = 0;
  g_javascript_thread = pthread_self();
  g_after = arguments[1];
  g_times = arguments[2];
  g_where = static_cast<int>(arguments[3]);
  const napi_value injected = number(env, g_injected.exchange(0));
  g_kinds = static_cast<int>(arguments[0]);
  return injected;
}

napi_value live_bytes(napi_env env, napi_callback_info) {
  return number(env, g_live_bytes);
}

napi_value live_work(napi_env env, napi_callback_info) {
  return number(env, g_live_work);
}

}  // namespace

/** With the addon's first export come those of this file. */
extern "C" napi_status napi_set_named_property(napi_env env, napi_value object, const char* name,
                                               napi_value value) {
  const auto set = real(&napi_set_named_property, "napi_set_named_property");
  if (std::strcmp(name, "failureMark") == 0) {
    const auto add = [&](const char* its_name, napi_callback callback) {
      napi_value function;
      napi_create_function(env, its_name, NAPI_AUTO_LENGTH, callback, nullptr, &function);
      set(env, object, its_name, function);
    };
    add("inject", inject);
    add("liveBytes", live_bytes);
    add("liveWork", live_work);
  }
  return set(env, object, name, value);
}
