#include "core/pages.h"

#include <algorithm>
#include <cerrno>

#ifdef _WIN32
#include "core/windows_api.h"
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace gguf {

#ifdef _WIN32

uint8_t* map_pages(size_t n_bytes) {
  return static_cast<uint8_t*>(VirtualAlloc(nullptr, n_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void unmap_pages(uint8_t* pages, size_t) {
  VirtualFree(pages, 0, MEM_RELEASE);
}

void want_huge_pages(void*, size_t) {}

bool pages_are_present(const void*, size_t) {
  return false;
}

void will_read(const void*, size_t) {}

void bring_in(const void* data, size_t n_bytes) {
  constexpr size_t kPageBytes = 4096;  // the smallest there are
  const auto* const bytes = static_cast<const volatile uint8_t*>(data);
  for (size_t at = 0; at < n_bytes; at += kPageBytes) (void)bytes[at];
  if (n_bytes > 0) (void)bytes[n_bytes - 1];
}

int lock_pages(const void* data, size_t n_bytes) {
  return VirtualLock(const_cast<void*>(data), n_bytes) ? 0 : static_cast<int>(GetLastError());
}

void forget_pages(const void*, size_t) {}

uint64_t physical_memory() {
  MEMORYSTATUSEX status;
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}

#else

namespace {

uintptr_t page_bytes() {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/** The whole pages that a range touches. */
struct PageRange {
  uint8_t* begin;
  size_t n_bytes;

  PageRange(const void* data, size_t size) {
    const auto first = reinterpret_cast<uintptr_t>(data) & ~(page_bytes() - 1);
    const auto end = (reinterpret_cast<uintptr_t>(data) + size + page_bytes() - 1) & ~(page_bytes() - 1);
    begin = reinterpret_cast<uint8_t*>(first);
    n_bytes = end - first;
  }
};

}  // namespace

uint8_t* map_pages(size_t n_bytes) {
  // The system aligns to small pages only: map one huge page more, and unmap what is too much.
  if (n_bytes > SIZE_MAX - kHugePageBytes) return nullptr;
  const size_t n_mapped = n_bytes + kHugePageBytes;
  void* const mapped = mmap(nullptr, n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const start = static_cast<uint8_t*>(mapped);
  const size_t n_before =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(start) % kHugePageBytes) % kHugePageBytes;
  uint8_t* const pages = start + n_before;
  if (n_before > 0) munmap(start, n_before);
  munmap(pages + n_bytes, n_mapped - n_before - n_bytes);
  want_huge_pages(pages, n_bytes);
  return pages;
}

void unmap_pages(uint8_t* pages, size_t n_bytes) {
  munmap(pages, n_bytes);
}

void want_huge_pages(void* data, size_t n_bytes) {
#ifdef MADV_HUGEPAGE
  const PageRange range(data, n_bytes);
  madvise(range.begin, range.n_bytes, MADV_HUGEPAGE);
#else
  (void)data;
  (void)n_bytes;
#endif
}

bool pages_are_present(const void* data, size_t n_bytes) {
  if (n_bytes == 0) return true;
  const PageRange range(data, n_bytes);
#ifdef __APPLE__
  using Residency = char;
#else
  using Residency = unsigned char;
#endif
  Residency present[512];  // of two megabytes of small pages
  for (size_t done = 0; done < range.n_bytes;) {
    const size_t step = std::min(range.n_bytes - done, sizeof present * page_bytes());
    if (mincore(range.begin + done, step, present) != 0) return false;
    const Residency* end = present + step / page_bytes();
    if (std::any_of(static_cast<const Residency*>(present), end,
                    [](Residency page) { return (page & 1) == 0; }))
      return false;
    done += step;
  }
  return true;
}

void will_read(const void* data, size_t n_bytes) {
  if (n_bytes == 0) return;
  const PageRange range(data, n_bytes);
  madvise(range.begin, range.n_bytes, MADV_WILLNEED);
}

void bring_in(const void* data, size_t n_bytes) {
  if (n_bytes == 0) return;
  const PageRange range(data, n_bytes);
#ifdef __linux__
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ of Linux 5.14, which older headers lack
  if (madvise(range.begin, range.n_bytes, kPopulateRead) == 0) return;
#endif
  madvise(range.begin, range.n_bytes, MADV_WILLNEED);
  const volatile uint8_t* const pages = range.begin;
  for (size_t at = 0; at < range.n_bytes; at += page_bytes()) (void)pages[at];
}

int lock_pages(const void* data, size_t n_bytes) {
  const PageRange range(data, n_bytes);
#ifdef MLOCK_ONFAULT
  // Without the flag, pages of a private mapping are copied: a second time the memory.
  const int result = mlock2(range.begin, range.n_bytes, MLOCK_ONFAULT);
#else
  const int result = mlock(range.begin, range.n_bytes);
#endif
  return result == 0 ? 0 : errno;
}

void forget_pages(const void* data, size_t n_bytes) {
  const auto start = reinterpret_cast<uintptr_t>(data);
  const uintptr_t n_before = (page_bytes() - start % page_bytes()) % page_bytes();
  if (n_before >= n_bytes) return;
  const size_t n_whole = (n_bytes - n_before) / page_bytes() * page_bytes();
  if (n_whole > 0) madvise(reinterpret_cast<void*>(start + n_before), n_whole, MADV_DONTNEED);
}

uint64_t physical_memory() {
#ifdef _SC_PHYS_PAGES
  const long n_pages = sysconf(_SC_PHYS_PAGES);
  return n_pages > 0 ? static_cast<uint64_t>(n_pages) * page_bytes() : 0;
#else
  return 0;
#endif
}

#endif

}  // namespace gguf
