#include "binding/strings.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "binding/environment.h"
#include "binding/errors.h"

namespace gguf::binding {

namespace {

constexpr size_t kBatch = 256;

bool is_ascii(const char* bytes, size_t n_bytes) {
  uint64_t seen = 0;
  size_t at = 0;
  for (; at + 8 <= n_bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + at, 8);
    seen |= word;
  }
  for (; at < n_bytes; ++at) seen |= static_cast<uint8_t>(bytes[at]);
  return (seen & 0x8080808080808080u) == 0;
}

}  // namespace

napi_status create_string(napi_env env, std::string_view bytes, napi_value* text) {
  // Latin-1 is the faster way in, and the same as UTF-8 where all is ASCII. A null pointer is refused even if
  // empty.
  const char* data = bytes.empty() ? "" : bytes.data();
  return is_ascii(data, bytes.size()) ? napi_create_string_latin1(env, data, bytes.size(), text)
                                      : napi_create_string_utf8(env, data, bytes.size(), text);
}

napi_value new_string(napi_env env, std::string_view bytes) {
  napi_value text;
  check(env, create_string(env, bytes, &text));
  return text;
}

bool get_string(napi_env env, napi_value value, std::string* text) {
  size_t n_bytes;
  if (napi_get_value_string_utf8(env, value, nullptr, 0, &n_bytes) != napi_ok) return false;
  text->resize(n_bytes + 1);  // Node writes a terminator
  check(env, napi_get_value_string_utf8(env, value, text->data(), text->size(), &n_bytes));
  text->resize(n_bytes);
  return true;
}

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  char text[32];
  for (int digits = 6; digits <= 17; ++digits) {  // the fewest that give the same number again
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  return text;
}

ArrayBuilder::ArrayBuilder(Environment& environment) : environment_(environment) {
  push_ = environment.array_push.Value();
}

ArrayBuilder::~ArrayBuilder() {
  // Only after an exception: scopes are closed from the inside out, as they must be.
  while (!levels_.empty()) {
    napi_close_handle_scope(environment_.env, levels_.back().scope);
    levels_.pop_back();
  }
}

void ArrayBuilder::begin() {
  Level level{};
  level.first = pending_.size();
  levels_.reserve(levels_.size() + 1);  // so that nothing can fail once the scope is open
  check(environment_.env, napi_create_array(environment_.env, &level.array));
  check(environment_.env, napi_open_handle_scope(environment_.env, &level.scope));
  levels_.push_back(level);
}

void ArrayBuilder::add(napi_value element) {
  pending_.push_back(element);
  Level& level = levels_.back();
  if (pending_.size() - level.first < kBatch) return;
  push_pending(level);
  check(environment_.env, napi_close_handle_scope(environment_.env, level.scope));
  check(environment_.env, napi_open_handle_scope(environment_.env, &level.scope));
}

napi_value ArrayBuilder::end() {
  Level& level = levels_.back();
  push_pending(level);
  const napi_value array = level.array;
  const napi_handle_scope scope = level.scope;
  levels_.pop_back();
  check(environment_.env, napi_close_handle_scope(environment_.env, scope));
  if (!levels_.empty()) add(array);
  return array;
}

void ArrayBuilder::push_pending(Level& level) {
  const size_t count = pending_.size() - level.first;
  if (count == 0) return;
  check(environment_.env, napi_call_function(environment_.env, level.array, push_, count,
                                             pending_.data() + level.first, nullptr));
  pending_.resize(level.first);
}

}  // namespace gguf::binding
