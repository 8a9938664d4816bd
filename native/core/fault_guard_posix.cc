#ifndef _WIN32

#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // dladdr
#endif
#if !defined(_FILE_OFFSET_BITS)
#define _FILE_OFFSET_BITS 64
#endif

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "core/fault_guard.h"
#include "core/mutex.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

namespace gguf {

/**
 * A place in the registry. The handler reads it while other threads may be changing it, and takes no lock:
 * `version` is odd during a change, and different after it. The place that a fault belongs to cannot
 * change meanwhile: that mapping is being read.
 */
struct WatchedMapping {
  std::atomic<size_t> version{0};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // of its last page; 0 where the place is free
  std::atomic<int> fd{-1};
  std::atomic<size_t> first_zeroed{SIZE_MAX};
};

namespace {

static_assert(std::atomic<size_t>::is_always_lock_free && std::atomic<uintptr_t>::is_always_lock_free &&
                  std::atomic<int>::is_always_lock_free && std::atomic<void*>::is_always_lock_free,
              "a signal handler can only use atomics without locks");

/** Places are made in groups, which are never freed: the handler may be looking at them. */
struct Group {
  WatchedMapping places[64];
  std::atomic<Group*> next{nullptr};
};

Group first_group;
/** For changes of the registry; the handler takes no lock. Never destroyed: files may still be closed while
   the process exits. */
Mutex& registry_mutex() {
  static Mutex* const mutex = new Mutex;
  return *mutex;
}

std::atomic<size_t> page_bytes{0};

/** The action that was there before a handler of ours; written before that is installed. */
struct Previous {
  struct sigaction action;
  std::atomic<bool> expired{false};  // SA_RESETHAND, and it was called
};

/**
 * Other code may install a handler after ours; then ours is installed again on top. Each time it is another
 * function, with its own record of the action before: their handler may pass signals on to the one it found,
 * and that must not become an endless loop.
 */
constexpr size_t kMaxHandlers = 16;
Previous previous_of[kMaxHandlers];

// ---- in the handler: only atomics and system calls

struct Found {
  WatchedMapping* place = nullptr;
  uintptr_t begin = 0, end = 0;
  int fd = -1;
};

Found find_mapping(uintptr_t address) {
  for (Group* group = &first_group; group != nullptr; group = group->next.load(std::memory_order_acquire)) {
    for (WatchedMapping& place : group->places) {
      const size_t version = place.version.load(std::memory_order_acquire);
      const Found found = {&place, place.begin.load(std::memory_order_relaxed),
                           place.end.load(std::memory_order_relaxed),
                           place.fd.load(std::memory_order_relaxed)};
      std::atomic_thread_fence(std::memory_order_acquire);
      const bool stable = version % 2 == 0 && place.version.load(std::memory_order_relaxed) == version;
      if (stable && address >= found.begin && address < found.end) return found;
    }
  }
  return {};
}

void note_zeros(WatchedMapping& place, size_t first) {
  size_t known = place.first_zeroed.load();
  while (first < known && !place.first_zeroed.compare_exchange_weak(known, first)) {
  }
}

/** Replaces the page of `address`, if it is in a watched mapping, and all other pages that the file no longer
   has. */
bool replace_missing_pages(uintptr_t address) {
  const Found found = find_mapping(address);
  if (found.place == nullptr) return false;
  const size_t page_size = page_bytes.load(std::memory_order_relaxed);
  uintptr_t from = address - address % page_size;
  uintptr_t to = from + page_size;
  size_t first_zeroed = from - found.begin;
  struct stat facts;
  if (fstat(found.fd, &facts) == 0 && facts.st_size >= 0) {
    // Where the file has become shorter, everything beyond its end at once: not one fault for each page of a
    // large model. Where it has not, or is long enough again, the system failed to read this one page, and
    // the others may still be there.
    const uint64_t size = static_cast<uint64_t>(facts.st_size);
    if (first_zeroed >= size) {
      first_zeroed = static_cast<size_t>(size);
      from = found.begin + (first_zeroed + page_size - 1) / page_size * page_size;
      to = found.end;
    }
  }
  // Noted first: any thread that reads the zeros must find the note.
  note_zeros(*found.place, first_zeroed);
  // Two threads that fault together do it twice; at worst that undoes a write to a page that is missing.
  void* const zeros = mmap(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return zeros != MAP_FAILED;
}

/** Whether a process sent the signal. The system gives a fault other codes, but not the same ones everywhere:
   macOS on Apple silicon calls every fault on a page one of alignment. So the code of a fault means nothing,
   only its address does. */
bool is_sent(const siginfo_t& info) {
  const int code = info.si_code;
  return code <= 0 || code == SI_USER || code == SI_QUEUE || code == SI_TIMER || code == SI_MESGQ ||
         code == SI_ASYNCIO;
}

/** Does what would have happened without our handler. */
void pass_on(Previous& previous, int signal, siginfo_t* info, void* context) {
  const struct sigaction& action = previous.action;
  const bool expired = (action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 &&
                       previous.expired.exchange(true, std::memory_order_relaxed);
  if (!expired && (action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  if (!expired && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    return action.sa_handler(signal);
  }
  const bool sent = is_sent(*info);
  if (sent && !expired && action.sa_handler == SIG_IGN) return;
  struct sigaction default_action = {};
  default_action.sa_handler = SIG_DFL;
  sigaction(signal, &default_action, nullptr);
  // A fault happens again as soon as this returns, and ends the process at the right place; a signal that was
  // sent does not.
  if (sent) raise(signal);
}

template <size_t kIndex>
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool replaced = !is_sent(*info) && replace_missing_pages(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved_errno;
  if (!replaced) pass_on(previous_of[kIndex], signal, info, context);
}

using Handler = void (*)(int, siginfo_t*, void*);
template <size_t... kIndexes>
constexpr std::array<Handler, sizeof...(kIndexes)> make_handlers(std::index_sequence<kIndexes...>) {
  return {on_bus_error<kIndexes>...};
}
constexpr std::array<Handler, kMaxHandlers> kHandlers =
    make_handlers(std::make_index_sequence<kMaxHandlers>());

// ---- outside of the handler

/** This code could be unloaded, as an addon is with the last worker that uses it; the handlers have to
   stay. */
void keep_loaded() {
#ifdef RTLD_NODELETE
  Dl_info self;
  if (dladdr(&previous_of, &self) != 0 && self.dli_fname != nullptr) {
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
#endif
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 &&
         std::find(kHandlers.begin(), kHandlers.end(), action.sa_sigaction) != kHandlers.end();
}

/** Whether the action calls no function. Then one handler of ours serves each time that it is found. */
bool calls_no_function(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 &&
         (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

/** The handler of ours to install on top of `action`; kMaxHandlers where none is left. */
size_t handler_on_top_of(const struct sigaction& action) GGUF_REQUIRES(registry_mutex()) {
  static size_t n_used = 0;
  if (calls_no_function(action)) {
    for (size_t i = 0; i < n_used; i++) {
      const struct sigaction& known = previous_of[i].action;
      if (calls_no_function(known) && known.sa_handler == action.sa_handler) return i;
    }
  }
  if (n_used == kMaxHandlers) return kMaxHandlers;
  previous_of[n_used].action = action;
  return n_used++;
}

bool install_on_top_of(const struct sigaction& action) GGUF_REQUIRES(registry_mutex()) {
  const size_t i = handler_on_top_of(action);
  if (i == kMaxHandlers) return false;
  struct sigaction ours = {};
  ours.sa_sigaction = kHandlers[i];
  // What the previous handler asked for holds when it is called from ours. An alternative stack is used if
  // there is one: threads of other runtimes have small ones of their own.
  ours.sa_mask = action.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (action.sa_flags & (SA_NODEFER | SA_RESTART));
  return sigaction(SIGBUS, &ours, nullptr) == 0;
}

/** Installs a handler of ours on top, unless one is there. */
bool install_handler() GGUF_REQUIRES(registry_mutex()) {
  static const bool prepared = [] {
    const long size = sysconf(_SC_PAGESIZE);
    page_bytes = static_cast<size_t>(size);
    keep_loaded();
    return size > 0;
  }();
  struct sigaction now;
  if (!prepared || sigaction(SIGBUS, nullptr, &now) != 0) return false;
  return is_ours(now) || install_on_top_of(now);
}

void set(WatchedMapping& place, uintptr_t begin, uintptr_t end, int fd) GGUF_REQUIRES(registry_mutex()) {
  const size_t version = place.version.load(std::memory_order_relaxed);
  place.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  place.begin.store(begin, std::memory_order_relaxed);
  place.end.store(end, std::memory_order_relaxed);
  place.fd.store(fd, std::memory_order_relaxed);
  place.first_zeroed.store(SIZE_MAX, std::memory_order_relaxed);
  place.version.store(version + 2, std::memory_order_release);
}

WatchedMapping& free_place() GGUF_REQUIRES(registry_mutex()) {
  Group* group = &first_group;
  for (;;) {
    for (WatchedMapping& place : group->places) {
      if (place.end.load(std::memory_order_relaxed) == 0) return place;
    }
    Group* next = group->next.load(std::memory_order_relaxed);
    if (next == nullptr) {
      next = new Group;
      group->next.store(next, std::memory_order_release);
    }
    group = next;
  }
}

}  // namespace

WatchedMapping* watch_mapping(uint8_t* start, size_t n_bytes, int fd) {
  const MutexLock lock(registry_mutex());
  if (n_bytes == 0 || !install_handler()) return nullptr;
  WatchedMapping& place = free_place();
  const size_t page_size = page_bytes.load(std::memory_order_relaxed);
  const auto begin = reinterpret_cast<uintptr_t>(start);
  set(place, begin, begin + (n_bytes + page_size - 1) / page_size * page_size, fd);
  return &place;
}

void unwatch_mapping(WatchedMapping* mapping) {
  const MutexLock lock(registry_mutex());
  set(*mapping, 0, 0, -1);
}

size_t first_zeroed_byte(const WatchedMapping* mapping) {
  // The caller has read the mapping. A processor may do these two reads in the other order unless told: then
  // zeros that another thread's fault has made would be read, but not the note about them.
  std::atomic_thread_fence(std::memory_order_acquire);
  return mapping->first_zeroed.load();
}

bool call_with_fault_guard(void (*function)(void*), void* argument, const void**) {
  function(argument);
  return true;
}

}  // namespace gguf

#endif  // !_WIN32
