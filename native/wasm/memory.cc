// Memory for the caller, and what takes the place of functions that would ask a system.
#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/checked.h"
#include "core/hash_keys.h"
#include "core/out_of_memory.h"
#include "wasm/module.h"

// Those of the libraries would import functions of a system: to end the process, to say why, and to read its
// environment.
extern "C" void abort() {
  __builtin_trap();
}
extern "C" int fprintf(FILE*, const char*, ...) {
  __builtin_trap();
}
extern "C" int vfprintf(FILE*, const char*, va_list) {
  __builtin_trap();
}
extern "C" char* getenv(const char*) {
  return nullptr;
}

// Without exceptions, the library's return a null pointer where memory ends. Address 0 is memory like any
// other here.
void* operator new(size_t n_bytes) {
  void* const memory = std::malloc(std::max<size_t>(n_bytes, 1));
  if (memory == nullptr) gguf::out_of_memory();
  return memory;
}
void* operator new[](size_t n_bytes) {
  return operator new(n_bytes);
}
void* operator new(size_t n_bytes, std::align_val_t alignment) {
  const size_t power = static_cast<size_t>(alignment);
  uint64_t rounded;
  if (!gguf::round_up(std::max<size_t>(n_bytes, 1), power, rounded)) gguf::out_of_memory();
  void* const memory = std::aligned_alloc(power, gguf::to_size(rounded));
  if (memory == nullptr) gguf::out_of_memory();
  return memory;
}
void* operator new[](size_t n_bytes, std::align_val_t alignment) {
  return operator new(n_bytes, alignment);
}

namespace gguf {

namespace {

constexpr size_t kAlignment = 64;

HashKeys keys = {};

}  // namespace

void out_of_memory() {
  __builtin_trap();
}

const HashKeys& hash_keys() {
  return keys;
}

/** Memory aligned to a cache line; 0 where there is none. */
GGUF_EXPORT("allocate") void* module_allocate(uint32_t n_bytes) {
  if (n_bytes > UINT32_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (std::max(n_bytes, 1u) + kAlignment - 1) / kAlignment * kAlignment);
}

GGUF_EXPORT("free") void module_free(void* memory) {
  std::free(memory);
}

/** Sets the keys of the hash of names, which only the caller can draw: random bytes at `drawn`. */
GGUF_EXPORT("set_hash_keys") void module_set_hash_keys(const void* drawn) {
  std::memcpy(&keys, drawn, sizeof keys);
}

}  // namespace gguf
