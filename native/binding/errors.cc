#include "binding/errors.h"

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "binding/environment.h"
#include "binding/strings.h"
#include "core/system_codes.h"

namespace gguf::binding {

namespace {

/** What an addon's exception says, as JavaScript gets it. Needs no memory of the addon, which may have ended.
 */
class Record {
 public:
  /** `code` is that of the error. */
  Record(napi_env env, const char* code, std::string_view detail) : env_(env) {
    set("code", new_string(env, code));
    set("detail", new_string(env, detail));
  }

  void set(const char* name, napi_value value) {
    properties_[n_properties_++] = {name,    nullptr, nullptr,         nullptr,
                                    nullptr, value,   napi_enumerable, nullptr};
  }

  /** Defines properties rather than setting them: that runs no setters of prototypes. */
  napi_value object(Environment& environment) {
    set("mark", environment.failure_mark.Value());
    napi_value object;
    check(env_, napi_create_object(env_, &object));
    check(env_, napi_define_properties(env_, object, n_properties_, properties_));
    return object;
  }

 private:
  napi_env env_;
  napi_property_descriptor properties_[6];  // code, detail, path, offset, systemCode, mark
  size_t n_properties_ = 0;
};

}  // namespace

napi_value make_error(Environment& environment, const Error& error, const std::string* path) {
  const napi_env env = environment.env;
  Record record(env, error_code_name(error.code), error.detail);
  if (path != nullptr) record.set("path", new_string(env, *path));
  if (error.offset != Error::kNoOffset) {
    record.set("offset", Napi::Number::New(env, static_cast<double>(error.offset)));
  }
  const char* const system_code = error.system_error == 0 ? nullptr : system_code_name(error.system_error);
  if (system_code != nullptr) record.set("systemCode", new_string(env, system_code));
  return record.object(environment);
}

void throw_error(Environment& environment, const Error& error, const std::string* path) {
  throw Napi::Error(environment.env, make_error(environment, error, path));
}

void throw_range(Environment& environment, std::string detail, const std::string* path) {
  throw_error(environment, Error{ErrorCode::kRange, std::move(detail)}, path);
}

void throw_arg_type(Environment& environment, const char* name, const char* expected) {
  const std::string detail = std::string("The \"") + name + "\" argument must be " + expected;
  throw Napi::Error(environment.env,
                    Record(environment.env, "ERR_INVALID_ARG_TYPE", detail).object(environment));
}

void throw_last(napi_env env) {
  throw Napi::Error::New(env);
}

napi_value caught_value(Environment& environment) noexcept {
  try {
    try {
      throw;
    } catch (const Napi::Error& error) {
      return error.Value();
    } catch (const std::bad_alloc&) {
      return make_error(environment, no_memory());
    } catch (const std::exception& exception) {
      return Napi::Error::New(environment.env, exception.what()).Value();
    }
  } catch (...) {  // making the error failed as well
    return nullptr;
  }
}

void leave_pending(Environment& environment) noexcept {
  const napi_value error = caught_value(environment);
  // A failure to throw means that the environment is ending: no JavaScript is left that could catch it.
  if (error != nullptr) napi_throw(environment.env, error);
}

}  // namespace gguf::binding
