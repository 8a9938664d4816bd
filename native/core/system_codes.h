// What operating systems call their errors.
#pragma once

#include <string>

namespace gguf {

/** "ENOENT" for what Error::system_error holds (errno, on Windows GetLastError()); "UNKNOWN" for a rare one.
 */
const char* system_code_name(int system_error);

/** What the system says about an error number, without a full stop. */
std::string system_message(int system_error);

}  // namespace gguf
