// Result and Error: how the core reports failure. Nothing here throws; only native/binding turns an Error
// into a JavaScript exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace gguf {

enum class ErrorCode : uint8_t {
  kOpen,             // the system refused to open, map or read the file; Error::system_error holds errno
  kMagic,            // the file does not start with "GGUF"
  kVersion,          // a version other than 1, 2 or 3
  kTruncated,        // something the header promises lies past the end of the file
  kInvalid,          // any other broken rule of the format
  kClosed,           // the file was closed
  kUnsupportedType,  // a tensor type that cannot be turned into numbers
  kRange,            // start, end, row or output size
  kOutOfMemory,      // an allocation failed
};

/** The name users see in `error.code`, such as "ERR_GGUF_TRUNCATED". */
const char* error_code_name(ErrorCode code);

struct Error {
  static constexpr uint64_t kNoOffset = UINT64_MAX;

  ErrorCode code = ErrorCode::kInvalid;
  std::string detail;           // what is wrong, what was found; one sentence without a full stop
  uint64_t offset = kNoOffset;  // byte in the file: where the field that is wrong starts
  int system_error = 0;         // errno (POSIX) or GetLastError() (Windows), for kOpen
  bool of_other = false;        // where two files are compared: about the second one
};

/** What an allocation that failed is reported as. Short enough to need no allocation itself. */
inline Error no_memory() {
  return Error{ErrorCode::kOutOfMemory, "out of memory"};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return state_.index() == 0; }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/** The outcome of something that has no value: nothing, or an error. */
using Status = std::optional<Error>;

}  // namespace gguf
