// How failure reaches JavaScript: as a plain object that says what failed, and carries the environment's
// mark. The facade makes the error of it (src/backend/native.ts), since only it knows its classes: several
// copies of it, in several realms, can share one environment. Nothing else in native/ makes errors, or turns
// C++ exceptions into them.
#pragma once

#include <napi.h>

#include <string>

#include "core/result.h"

namespace gguf::binding {

class Environment;

/** Throws `error`. `path`: of the file it is about, if there is one. */
[[noreturn]] void throw_error(Environment& environment, const Error& error,
                              const std::string* path = nullptr);

/** The same error as a value, for a promise to reject with. */
napi_value make_error(Environment& environment, const Error& error, const std::string* path = nullptr);

/** Throws ERR_GGUF_RANGE. */
[[noreturn]] void throw_range(Environment& environment, std::string detail,
                              const std::string* path = nullptr);

/** Throws ERR_INVALID_ARG_TYPE, a TypeError, in Node's wording: `expected` reads "of type number". */
[[noreturn]] void throw_arg_type(Environment& environment, const char* name, const char* expected);

/** Throws what a failed Node-API call left: the pending exception, or an error that names the failure. */
[[noreturn]] void throw_last(napi_env env);

inline void check(napi_env env, napi_status status) {
  if (status != napi_ok) throw_last(env);
}

/**
 * Call from a catch (...) block at the end of every entry point: makes the C++ exception in flight the
 * pending JavaScript exception. Does nothing where JavaScript cannot run any more, because the environment is
 * ending.
 */
void leave_pending(Environment& environment) noexcept;

/** As leave_pending, but returns the exception as a value, for a promise to reject with. */
napi_value caught_value(Environment& environment) noexcept;

}  // namespace gguf::binding
