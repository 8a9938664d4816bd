// Text between C++ and JavaScript, and JavaScript arrays of many elements.
#pragma once

#include <napi.h>

#include <string>
#include <string_view>
#include <vector>

namespace gguf::binding {

class Environment;

/** A JavaScript string from UTF-8; U+FFFD stands for bytes that are not. Fails where the string is too long
   for the runtime.
 */
napi_status create_string(napi_env env, std::string_view bytes, napi_value* text);
/** The same for text that is never that long. */
napi_value new_string(napi_env env, std::string_view bytes);

/** UTF-8 of a string argument. False where `value` is not a string. */
bool get_string(napi_env env, napi_value value, std::string* text);

/** A number as JavaScript would print it, for messages. */
std::string number_text(double number);

/**
 * Builds JavaScript arrays, nested ones too, by pushing a few hundred elements per call into JavaScript:
 * setting them one by one takes three times as long. Handles live no longer than their batch, so memory does
 * not grow with the number of elements.
 */
class ArrayBuilder {
 public:
  explicit ArrayBuilder(Environment& environment);
  ArrayBuilder(const ArrayBuilder&) = delete;
  ArrayBuilder& operator=(const ArrayBuilder&) = delete;
  ~ArrayBuilder();

  /** Starts an array inside the current one, if there is one. */
  void begin();
  void add(napi_value element);
  /** Finishes the current array: it becomes an element of the one around it, if there is one. Returns it. */
  napi_value end();
  /** Arrays that are started and not finished. */
  size_t depth() const { return levels_.size(); }

 private:
  struct Level {
    napi_value array;         // in the scope of the level around it
    napi_handle_scope scope;  // of the elements that were not pushed yet
    size_t first;             // their position in pending_
  };
  void push_pending(Level& level);

  Environment& environment_;
  napi_value push_;
  std::vector<Level> levels_;
  std::vector<napi_value> pending_;
};

}  // namespace gguf::binding
