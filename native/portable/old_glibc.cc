// For prebuilt addons (GGUF_NATIVE_OLD_GLIBC): what our own code and the C++ runtime that is linked into the
// addon would take from a newer glibc than that of Debian 11 and Ubuntu 20.04 (2.31), where the addon was
// built on a newer system, or what musl does not have. Each name is defined here, inside the addon, by means
// that all of them have. scripts/release/portable.mjs checks that nothing is missing.
#if defined(GGUF_NATIVE_OLD_GLIBC) && defined(__linux__)

#include <features.h>

#ifdef __GLIBC__

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

// The symbol versions that glibc began with on an architecture.
#if defined(__x86_64__)
#define GGUF_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GGUF_FIRST_GLIBC "GLIBC_2.17"
#else
#error "the first glibc version of this architecture is not known here"
#endif

// Under names of our own for the compiler: headers declare these already, some of them otherwise.
#define GGUF_DEFINES(name) __asm__(#name)
#define GGUF_FIRST_VERSION(alias, name) __asm__(".symver " #alias "," #name "@" GGUF_FIRST_GLIBC)

extern "C" {

// 2.32: whether atomic operations can be done without. Saying no is always right.
extern const char gguf_single_threaded GGUF_DEFINES(__libc_single_threaded);
const char gguf_single_threaded = 0;

// 2.33: before, a macro that called __fxstat. The kernel's struct is glibc's on both architectures.
int gguf_fstat(int fd, struct stat* facts) GGUF_DEFINES(fstat);
int gguf_fstat(int fd, struct stat* facts) {
  return static_cast<int>(syscall(SYS_fstat, fd, facts));
}
int gguf_fstat64(int fd, struct stat* facts) GGUF_DEFINES(fstat64);
int gguf_fstat64(int fd, struct stat* facts) {
  return gguf_fstat(fd, facts);
}

// 2.34: moved from libpthread into libc, and have a second version since.
int gguf_first_pthread_once(pthread_once_t*, void (*)());
GGUF_FIRST_VERSION(gguf_first_pthread_once, pthread_once);
int gguf_pthread_once(pthread_once_t* control, void (*run)()) GGUF_DEFINES(pthread_once);
int gguf_pthread_once(pthread_once_t* control, void (*run)()) {
  return gguf_first_pthread_once(control, run);
}

int gguf_first_pthread_key_create(pthread_key_t*, void (*)(void*));
GGUF_FIRST_VERSION(gguf_first_pthread_key_create, pthread_key_create);
int gguf_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) GGUF_DEFINES(__pthread_key_create);
int gguf_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return gguf_first_pthread_key_create(key, destroy);
}

int gguf_first_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
GGUF_FIRST_VERSION(gguf_first_pthread_create, pthread_create);
int gguf_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                        void* argument) GGUF_DEFINES(pthread_create);
int gguf_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                        void* argument) {
  return gguf_first_pthread_create(thread, attributes, run, argument);
}

int gguf_first_pthread_join(pthread_t, void**);
GGUF_FIRST_VERSION(gguf_first_pthread_join, pthread_join);
int gguf_pthread_join(pthread_t thread, void** result) GGUF_DEFINES(pthread_join);
int gguf_pthread_join(pthread_t thread, void** result) {
  return gguf_first_pthread_join(thread, result);
}

int gguf_first_pthread_detach(pthread_t);
GGUF_FIRST_VERSION(gguf_first_pthread_detach, pthread_detach);
int gguf_pthread_detach(pthread_t thread) GGUF_DEFINES(pthread_detach);
int gguf_pthread_detach(pthread_t thread) {
  return gguf_first_pthread_detach(thread);
}

// 2.34: likewise from libdl, which Node itself loads.
void* gguf_first_dlopen(const char*, int);
GGUF_FIRST_VERSION(gguf_first_dlopen, dlopen);
void* gguf_dlopen(const char* file, int mode) GGUF_DEFINES(dlopen);
void* gguf_dlopen(const char* file, int mode) {
  return gguf_first_dlopen(file, mode);
}

int gguf_first_dladdr(const void*, Dl_info*);
GGUF_FIRST_VERSION(gguf_first_dladdr, dladdr);
int gguf_dladdr(const void* address, Dl_info* info) GGUF_DEFINES(dladdr);
int gguf_dladdr(const void* address, Dl_info* info) {
  return gguf_first_dladdr(address, info);
}

// 2.36: random numbers, for std::random_device.
uint32_t gguf_arc4random() GGUF_DEFINES(arc4random);
uint32_t gguf_arc4random() {
  uint32_t number;
  while (getentropy(&number, sizeof number) != 0) continue;
  return number;
}

#ifdef __aarch64__
// musl has it without underscores only; for the choice of atomic instructions.
unsigned long gguf_getauxval(unsigned long type) GGUF_DEFINES(__getauxval);
unsigned long gguf_getauxval(unsigned long type) {
  return getauxval(type);
}
#endif

}  // extern "C"

#if __GLIBC_PREREQ(2, 35)

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* found;
};

/** Whether this is the object with the address, and what the unwinder needs to know about it. */
int look_in(dl_phdr_info* object, size_t, void* data) {
  const Search& search = *static_cast<Search*>(data);
  uintptr_t start = 0;
  uintptr_t end = 0;
  void* frames = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t at = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) frames = reinterpret_cast<void*>(at);
    if (segment.p_type == PT_LOAD && at <= search.address && search.address < at + segment.p_memsz) {
      start = at;
      end = at + segment.p_memsz;
    }
  }
  if (end == 0) return 0;
  if (frames == nullptr) return -1;
  *search.found = {};
  search.found->dlfo_map_start = reinterpret_cast<void*>(start);
  search.found->dlfo_map_end = reinterpret_cast<void*>(end);
  search.found->dlfo_eh_frame = frames;
  return 1;
}

}  // namespace

// 2.35: for the unwinder, which would otherwise ask dl_iterate_phdr itself.
extern "C" int gguf_dl_find_object(void* address, dl_find_object* found) GGUF_DEFINES(_dl_find_object);
extern "C" int gguf_dl_find_object(void* address, dl_find_object* found) {
  Search search{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(look_in, &search) == 1 ? 0 : -1;
}

#endif  // _dl_find_object

#endif  // __GLIBC__
#endif  // GGUF_NATIVE_OLD_GLIBC
