// Bytes whose end is the end of what may be read: reading one more ends the process, where systems can do
// that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#if defined(_WIN32) || defined(__wasi__)
#define GGUF_TEST_UNGUARDED
#include <vector>
#else
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#endif

namespace gguf::test {

class GuardedBytes {
 public:
  GuardedBytes(const uint8_t* bytes, size_t n_bytes) : size_(n_bytes) {
#ifdef GGUF_TEST_UNGUARDED
    copy_.assign(bytes, bytes + n_bytes);
    data_ = copy_.data();
#else
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    n_mapped_ = (n_bytes + page - 1) / page * page + page;
    void* start = mmap(nullptr, n_mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<uint8_t*>(start);
    mprotect(start_ + n_mapped_ - page, page, PROT_NONE);
    data_ = start_ + n_mapped_ - page - n_bytes;
    if (n_bytes > 0) std::memcpy(data_, bytes, n_bytes);
#endif
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

#ifndef GGUF_TEST_UNGUARDED
  ~GuardedBytes() { munmap(start_, n_mapped_); }
#endif

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  uint8_t* data_ = nullptr;
#ifdef GGUF_TEST_UNGUARDED
  std::vector<uint8_t> copy_;
#else
  uint8_t* start_ = nullptr;
  size_t n_mapped_ = 0;
#endif
};

}  // namespace gguf::test
