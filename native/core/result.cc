#include "core/result.h"

namespace gguf {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOpen:
      return "ERR_GGUF_OPEN";
    case ErrorCode::kMagic:
      return "ERR_GGUF_MAGIC";
    case ErrorCode::kVersion:
      return "ERR_GGUF_VERSION";
    case ErrorCode::kTruncated:
      return "ERR_GGUF_TRUNCATED";
    case ErrorCode::kInvalid:
      return "ERR_GGUF_INVALID";
    case ErrorCode::kClosed:
      return "ERR_GGUF_CLOSED";
    case ErrorCode::kTensorNotFound:
      return "ERR_GGUF_TENSOR_NOT_FOUND";
    case ErrorCode::kUnsupportedType:
      return "ERR_GGUF_UNSUPPORTED_TYPE";
    case ErrorCode::kRange:
      return "ERR_GGUF_RANGE";
    case ErrorCode::kOutOfMemory:
      return "ERR_GGUF_OUT_OF_MEMORY";
  }
  return "ERR_GGUF_INVALID";
}

}  // namespace gguf
