// What the WebAssembly module exports: the kernels over memory that its caller allocates here. It imports
// nothing.
//
// The caller checks every argument: a wrong one can spoil the memory of this instance, and of nothing else.
// There are no exceptions; where memory ends, allocate returns 0, and everything else ends in a trap, after
// which an instance is not used again.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "dequant/dequant.h"
#include "dequant/formats.h"
#include "dequant/products.h"

#define GGUF_EXPORT(name) extern "C" __attribute__((export_name(name)))

// The C library's would import functions of a system, to end the process and to read its environment.
extern "C" void abort() {
  __builtin_trap();
}
extern "C" char* getenv(const char*) {
  return nullptr;
}

namespace gguf {
namespace {

constexpr size_t kAlignment = 64;

/** Memory for `n` floats; traps where there is none. */
float* floats(uint64_t n) {
  void* const memory =
      n > SIZE_MAX / sizeof(float)
          ? nullptr
          : std::aligned_alloc(kAlignment, static_cast<size_t>(n * sizeof(float) + kAlignment - 1) /
                                               kAlignment * kAlignment);
  if (memory == nullptr) std::abort();
  return static_cast<float*>(memory);
}

}  // namespace

/** Memory aligned to a cache line; 0 where there is none. */
GGUF_EXPORT("allocate") void* module_allocate(uint32_t n_bytes) {
  if (n_bytes > UINT32_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (std::max(n_bytes, 1u) + kAlignment - 1) / kAlignment * kAlignment);
}

GGUF_EXPORT("free") void module_free(void* memory) {
  std::free(memory);
}

/** `gguf::dequantize` of the format with this number; false where there is none. */
GGUF_EXPORT("dequantize")
bool module_dequantize(uint32_t format, uint32_t out, bool big_endian, const uint8_t* blocks,
                       uint32_t n_blocks, void* numbers) {
  const Format* const found = find_format(format);
  if (found == nullptr) return false;
  dequantize(*found, static_cast<Out>(out), Store::kPlain, big_endian, blocks, n_blocks, numbers);
  return true;
}

/** `Products`: of n_rows rows with n vectors; product v of row r goes to y[v * y_stride + r]. */
GGUF_EXPORT("multiply")
bool module_multiply(uint32_t format, bool big_endian, const uint8_t* rows, uint32_t n_rows, uint32_t columns,
                     const float* x, uint32_t n, float* y, uint32_t y_stride) {
  const Format* const found = find_format(format);
  if (found == nullptr) return false;
  const Products products(*found, big_endian, columns, n);
  float* const packed = floats(products.packed_floats());
  float* const scratch = floats(products.scratch_floats());
  products.pack(x, packed);
  products.multiply(rows, n_rows, packed, scratch, y, y_stride);
  std::free(scratch);
  std::free(packed);
  return true;
}

}  // namespace gguf
