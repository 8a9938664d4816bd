#include "binding/call.h"

#include <algorithm>
#include <string>

#include "binding/environment.h"
#include "binding/strings.h"

namespace gguf::binding {

namespace {

constexpr double kMaxExact = 9007199254740992.0;  // 2^53

[[noreturn]] void throw_not_whole(const Call& call, const char* name, double last, double found) {
  const std::string detail = std::string(name) + " must be a whole number from 0 to " + number_text(last) +
                             ", found " + number_text(found);
  throw_error(call.environment(), Error{ErrorCode::kRange, detail});
}

double double_of(const Call& call, size_t index, const char* name) {
  double number;
  if (napi_get_value_double(call.env(), call[index], &number) != napi_ok) {
    throw_arg_type(call.environment(), name, "of type number");
  }
  return number;
}

double whole_up_to(const Call& call, size_t index, const char* name, double last) {
  const double number = double_of(call, index, name);
  // Written so that NaN fails as well, and nothing is converted that does not fit.
  if (!(number >= 0 && number <= last && static_cast<double>(static_cast<int64_t>(number)) == number)) {
    throw_not_whole(call, name, last, number);
  }
  return number;
}

}  // namespace

Call::Call(napi_env env, napi_callback_info info) : env_(env), count_(kMaxArgs) {
  void* data = nullptr;
  // Cannot fail: both handles come from Node itself.
  napi_get_cb_info(env, info, &count_, args_, nullptr, &data);
  environment_ = static_cast<Environment*>(data);
}

Call::Call(const Call& outer, napi_value arguments)
    : env_(outer.env_), environment_(outer.environment_), count_(kMaxArgs) {
  uint32_t length = 0;
  if (napi_get_array_length(env_, arguments, &length) != napi_ok || length > kMaxArgs) {
    throw_arg_type(*environment_, "arguments", "an array of arguments");
  }
  for (uint32_t i = 0; i < length; ++i) check(env_, napi_get_element(env_, arguments, i, &args_[i]));
  napi_value undefined;
  check(env_, napi_get_undefined(env_, &undefined));
  std::fill(args_ + length, args_ + kMaxArgs, undefined);
}

void Call::check_count() const {
  if (count_ <= kMaxArgs) return;
  const std::string detail =
      std::to_string(count_) + " arguments, of which only " + std::to_string(kMaxArgs) + " would be read";
  throw_error(*environment_, Error{ErrorCode::kRange, detail});
}

bool Call::is_undefined(size_t index) const {
  napi_valuetype type;
  check(env_, napi_typeof(env_, args_[index], &type));
  return type == napi_undefined;
}

uint32_t Call::array_length(size_t index, const char* name) const {
  uint32_t length = 0;
  if (napi_get_array_length(env_, args_[index], &length) != napi_ok) {
    throw_arg_type(*environment_, name, "an instance of Array");
  }
  return length;
}

bool Call::boolean(size_t index, const char* name) const {
  bool value;
  if (napi_get_value_bool(env_, args_[index], &value) != napi_ok)
    throw_arg_type(*environment_, name, "of type boolean");
  return value;
}

float Call::number(size_t index, const char* name) const {
  return static_cast<float>(double_of(*this, index, name));
}

uint64_t Call::whole(size_t index, const char* name) const {
  return static_cast<uint64_t>(whole_up_to(*this, index, name, kMaxExact));
}

size_t Call::position(size_t index, const char* name, size_t count) const {
  // With a count of 0 no number is valid: none is at most -1.
  return static_cast<size_t>(whole_up_to(*this, index, name, static_cast<double>(count) - 1));
}

uint32_t Call::uint32(size_t index, const char* name) const {
  return static_cast<uint32_t>(whole_up_to(*this, index, name, UINT32_MAX));
}

void Call::expect(bool holds, const char* what) const {
  if (!holds) throw_range(*environment_, what);
}

Napi::Function Call::function(size_t index, const char* name) const {
  const Napi::Value value(env_, args_[index]);
  if (!value.IsFunction()) throw_arg_type(*environment_, name, "of type function");
  return value.As<Napi::Function>();
}

}  // namespace gguf::binding
