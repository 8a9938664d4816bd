#include "core/system_codes.h"

#include <system_error>

#ifdef _WIN32
#include "core/windows_api.h"
#else
#include <cerrno>
#endif

namespace gguf {

const char* system_code_name(int system_error) {
#ifdef _WIN32
  // The same names that Node gives to what opening, reading and mapping files can meet.
  switch (system_error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
      return "ENOENT";
    case ERROR_ACCESS_DENIED:
      return "EPERM";
    case ERROR_NOACCESS:
      return "EACCES";
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
      return "EBUSY";
    case ERROR_TOO_MANY_OPEN_FILES:
      return "EMFILE";
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return "ENOMEM";
    case ERROR_FILENAME_EXCED_RANGE:
      return "ENAMETOOLONG";
    case ERROR_DIRECTORY_NOT_SUPPORTED:
      return "EISDIR";
    case ERROR_DIRECTORY:
      return "ENOTDIR";
    case ERROR_CANT_RESOLVE_FILENAME:
      return "ELOOP";
    case ERROR_CRC:
    case ERROR_IO_DEVICE:
    case ERROR_READ_FAULT:
    case ERROR_GEN_FAILURE:
      return "EIO";
    case ERROR_INVALID_PARAMETER:
    case ERROR_INVALID_FUNCTION:
      return "EINVAL";
    default:
      return "UNKNOWN";
  }
#else
#define GGUF_CODE(name) \
  case name:            \
    return #name;
  switch (system_error) {
    GGUF_CODE(EACCES)
    GGUF_CODE(EAGAIN)
    GGUF_CODE(EBADF)
    GGUF_CODE(EBUSY)
    GGUF_CODE(EFAULT)
    GGUF_CODE(EFBIG)
    GGUF_CODE(EINTR)
    GGUF_CODE(EINVAL)
    GGUF_CODE(EIO)
    GGUF_CODE(EISDIR)
    GGUF_CODE(ELOOP)
    GGUF_CODE(EMFILE)
    GGUF_CODE(ENAMETOOLONG)
    GGUF_CODE(ENETDOWN)
    GGUF_CODE(ENETUNREACH)
    GGUF_CODE(ENFILE)
    GGUF_CODE(ENODEV)
    GGUF_CODE(ENOENT)
    GGUF_CODE(ENOMEM)
    GGUF_CODE(ENOSYS)
    GGUF_CODE(ENOTCONN)
    GGUF_CODE(ENOTDIR)
    GGUF_CODE(ENOTSUP)
    GGUF_CODE(ENXIO)
    GGUF_CODE(EOVERFLOW)
    GGUF_CODE(EPERM)
    GGUF_CODE(ESPIPE)
    GGUF_CODE(ESTALE)
    GGUF_CODE(ETIMEDOUT)
    GGUF_CODE(ETXTBSY)
    default:
      return "UNKNOWN";
  }
#undef GGUF_CODE
#endif
}

std::string system_message(int system_error) {
  std::string message = std::system_category().message(system_error);
  while (!message.empty() && (message.back() == '.' || message.back() == '\n' || message.back() == '\r' ||
                              message.back() == ' ')) {
    message.pop_back();
  }
  return message;
}

}  // namespace gguf
