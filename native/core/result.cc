#include "core/result.h"

#include <iterator>

namespace gguf {

namespace {

// In the order of ErrorCode.
constexpr const char* kNames[] = {
    "ERR_GGUF_OPEN",          "ERR_GGUF_MAGIC",  "ERR_GGUF_VERSION",          "ERR_GGUF_TRUNCATED",
    "ERR_GGUF_INVALID",       "ERR_GGUF_CLOSED", "ERR_GGUF_UNSUPPORTED_TYPE", "ERR_GGUF_RANGE",
    "ERR_GGUF_OUT_OF_MEMORY",
};
static_assert(std::size(kNames) == static_cast<size_t>(ErrorCode::kOutOfMemory) + 1, "one for each");

}  // namespace

const char* error_code_name(ErrorCode code) {
  return kNames[static_cast<uint8_t>(code)];
}

}  // namespace gguf
