#include "binding/errors.h"

#include <exception>
#include <new>
#include <utility>

#include "binding/environment.h"
#include "binding/strings.h"
#include "core/system_codes.h"

namespace gguf::binding {

namespace {

/** Used until a factory is registered. */
Napi::Value plain_error(Napi::Env env, const Error& error) {
  Napi::Error value = Napi::Error::New(env, error.detail);
  value.Set("code", error_code_name(error.code));
  return value.Value();
}

Error out_of_memory() {
  return Error{ErrorCode::kOutOfMemory, "out of memory"};
}

}  // namespace

napi_value make_error(Environment& environment, const Error& error, const std::string* path) {
  Napi::Env env(environment.env);
  if (environment.error_factory.IsEmpty()) return plain_error(env, error);
  const char* system_code = error.system_error == 0 ? nullptr : system_code_name(error.system_error);
  const napi_value undefined = env.Undefined();
  return environment.error_factory.Value().Call({
      Napi::String::New(env, error_code_name(error.code)),
      new_string(env, error.detail),
      path == nullptr ? undefined : new_string(env, *path),
      error.offset == Error::kNoOffset ? undefined
                                       : Napi::Number::New(env, static_cast<double>(error.offset)),
      system_code == nullptr ? undefined : Napi::String::New(env, system_code),
  });
}

void throw_error(Environment& environment, const Error& error, const std::string* path) {
  throw Napi::Error(environment.env, make_error(environment, error, path));
}

void throw_range(Environment& environment, std::string detail, const std::string* path) {
  throw_error(environment, Error{ErrorCode::kRange, std::move(detail)}, path);
}

void throw_arg_type(napi_env env, const char* name, const char* expected) {
  Napi::TypeError error =
      Napi::TypeError::New(env, std::string("The \"") + name + "\" argument must be " + expected);
  error.Set("code", "ERR_INVALID_ARG_TYPE");
  throw Napi::Error(error);
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
      return make_error(environment, out_of_memory());
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
