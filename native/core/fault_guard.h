// Page faults on mapped files. Pages of a mapping can go missing: the file is truncated, or the network or
// the disk it is on fails. Reading such a page is not an error that a call could return, but a signal (POSIX)
// or an exception (Windows) that ends the process.
//
// POSIX: a handler for SIGBUS puts zeroed memory in place of missing pages of watched mappings, notes which,
// and lets the read go on, wherever it was: in a kernel, in the parser, in JavaScript with a view. Afterwards
// File::check tells. All other faults go to the handler that was there before.
//
// Windows does not let a mapped file be truncated. What is left, a medium that fails, is caught around reads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf {

#ifndef _WIN32

struct WatchedMapping;

/**
 * Watches a private mapping of `fd` from its start: from here on reads and writes in it do not fail. `fd`
 * stays open and the mapping in place until unwatch_mapping. nullptr where it cannot be watched. Throws
 * bad_alloc.
 */
WatchedMapping* watch_mapping(uint8_t* start, size_t n_bytes, int fd);
/** Call it before unmapping, when no thread reads any more. */
void unwatch_mapping(WatchedMapping* mapping);

/** The first byte, counted from the start of the mapping, that was replaced by zeros; SIZE_MAX where none
 * was. */
size_t first_zeroed_byte(const WatchedMapping* mapping);

#endif

/** Whether mapped files can be read anywhere, rather than only inside read_mapping. */
#ifdef _WIN32
constexpr bool kMappedReadsNeverFault = false;
#else
constexpr bool kMappedReadsNeverFault = true;
#endif

/** For read_mapping. */
bool call_with_fault_guard(void (*function)(void*), void* argument, const void** lost_at);

/**
 * Calls `read`, which reads a mapped file and has nothing to clean up. False where the system could not bring
 * in a page, that of `lost_at`, and `read` was abandoned; never on POSIX, see above.
 */
template <class Read>
bool read_mapping(Read read, const void** lost_at = nullptr) {
  if (kMappedReadsNeverFault) {
    read();
    return true;
  }
  return call_with_fault_guard([](void* argument) { (*static_cast<Read*>(argument))(); }, &read, lost_at);
}

}  // namespace gguf
