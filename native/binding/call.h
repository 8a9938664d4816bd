// One call from JavaScript: its arguments, checked, and the guard around every entry point.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>

#include "binding/errors.h"

namespace gguf::binding {

class Environment;

/**
 * The arguments of one call; those that were not given are undefined. Built on the stack without allocating:
 * a call for a single row must cost less than its kernel.
 */
class Call {
 public:
  Call(napi_env env, napi_callback_info info);
  /** Of a list of arguments, an array, that another call has. */
  Call(const Call& outer, napi_value arguments);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  napi_env env() const { return env_; }
  Environment& environment() const { return *environment_; }
  /** How many elements argument `index` has, an array. */
  uint32_t array_length(size_t index, const char* name) const;
  napi_value operator[](size_t index) const { return args_[index]; }

  /** Throws where there are more arguments than a call holds. */
  void check_count() const;
  bool is_undefined(size_t index) const;
  bool boolean(size_t index, const char* name) const;
  /** A whole number from 0 to 2^53; ERR_GGUF_RANGE for another number. */
  uint64_t whole(size_t index, const char* name) const;
  /** A number, rounded to binary32. */
  float number(size_t index, const char* name) const;
  /** A whole number below `count`; ERR_GGUF_RANGE for another number. */
  size_t position(size_t index, const char* name, size_t count) const;
  /** A whole number from 0 to 2^32-1; ERR_GGUF_RANGE for another number. */
  uint32_t uint32(size_t index, const char* name) const;
  /** Throws ERR_GGUF_RANGE with what should hold, unless it does. */
  void expect(bool holds, const char* what) const;
  /** Throws a TypeError unless it is a function. */
  Napi::Function function(size_t index, const char* name) const;

 private:
  /** More than any function takes: a call with more is refused, so that none is ever dropped. */
  static constexpr size_t kMaxArgs = 10;

  napi_env env_;
  Environment* environment_;
  size_t count_;
  napi_value args_[kMaxArgs];
};

/** The body of a function: returns its result, or nullptr for undefined; may throw. */
using Body = napi_value (*)(const Call& call);

/** Turns a body into what Node calls. Catches every exception. */
template <Body body>
napi_value entry(napi_env env, napi_callback_info info) noexcept {
  const Call call(env, info);
  try {
    call.check_count();
    return body(call);
  } catch (...) {
    leave_pending(call.environment());
    return nullptr;
  }
}

}  // namespace gguf::binding
