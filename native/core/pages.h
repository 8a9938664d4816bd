// Pages of memory as the system hands them out: large blocks for results, and questions about pages that
// exist.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf {

/** What blocks are made of and rounded up to: the size of a huge page on x86-64 and of most on 64-bit ARM. */
constexpr size_t kHugePageBytes = size_t{2} << 20;

/**
 * `n_bytes` (a multiple of kHugePageBytes) of zeroed memory that starts on a huge page, and is made of huge
 * pages where the system has them: a fresh page costs a microsecond of faulting, whatever its size. nullptr
 * where there is none.
 */
uint8_t* map_pages(size_t n_bytes);
void unmap_pages(uint8_t* pages, size_t n_bytes);

/** Asks for huge pages in memory that was allocated elsewhere, where its pages are not present yet. */
void want_huge_pages(void* data, size_t n_bytes);

/**
 * Whether all pages of a range are in memory already, so that a store to them causes no page fault. False
 * where the system does not tell.
 */
bool pages_are_present(const void* data, size_t n_bytes);

/** Tells the system that a range of a mapped file will be read soon: it reads ahead, and this call does not
 * wait. */
void will_read(const void* data, size_t n_bytes);

/** Brings the pages of a range of a mapped file into memory: for read_mapping. */
void bring_in(const void* data, size_t n_bytes);
/**
 * Keeps the pages of a range in memory until they are unmapped: those that are there, and those that are
 * brought in later. The system's error number; 0 where it does so.
 */
int lock_pages(const void* data, size_t n_bytes);

/**
 * Gives the whole pages in a range of a privately mapped file back to the system: they are read from the file
 * again at the next use, and what was written to them is lost. Pages that are only partly in the range stay.
 */
void forget_pages(const void* data, size_t n_bytes);

/** Physical memory of the machine, in bytes; 0 where the system does not tell. */
uint64_t physical_memory();

}  // namespace gguf
