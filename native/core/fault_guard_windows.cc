#ifdef _WIN32

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include "core/fault_guard.h"

namespace gguf {

#ifdef _MSC_VER

// A function of its own: one with __try may hold no object that has a destructor.
bool call_with_fault_guard(void (*function)(void*), void* argument) {
  __try {
    function(argument);
    return true;
  } __except (GetExceptionCode() == EXCEPTION_IN_PAGE_ERROR ? EXCEPTION_EXECUTE_HANDLER
                                                            : EXCEPTION_CONTINUE_SEARCH) {
    return false;
  }
}

#else

// GCC has no structured exceptions: built with MinGW, the addon does not survive a failing medium.
bool call_with_fault_guard(void (*function)(void*), void* argument) {
  function(argument);
  return true;
}

#endif

}  // namespace gguf

#endif  // _WIN32
