#ifdef _WIN32

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include "core/fault_guard.h"

namespace gguf {

#ifdef _MSC_VER

namespace {

/** Whether __except handles what was raised: only pages that could not be read, the address of which it
 * notes. */
int filter(const EXCEPTION_RECORD& raised, const void** lost_at) {
  if (raised.ExceptionCode != EXCEPTION_IN_PAGE_ERROR) return EXCEPTION_CONTINUE_SEARCH;
  if (lost_at != nullptr) *lost_at = reinterpret_cast<const void*>(raised.ExceptionInformation[1]);
  return EXCEPTION_EXECUTE_HANDLER;
}

}  // namespace

// A function of its own: one with __try may hold no object that has a destructor.
bool call_with_fault_guard(void (*function)(void*), void* argument, const void** lost_at) {
  __try {
    function(argument);
    return true;
  } __except (filter(*GetExceptionInformation()->ExceptionRecord, lost_at)) {
    return false;
  }
}

#else

// GCC has no structured exceptions: built with MinGW, the addon does not survive a failing medium.
bool call_with_fault_guard(void (*function)(void*), void* argument, const void**) {
  function(argument);
  return true;
}

#endif

}  // namespace gguf

#endif  // _WIN32
