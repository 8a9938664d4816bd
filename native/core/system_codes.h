// Names for the error numbers of operating systems.
#pragma once

namespace gguf {

/** "ENOENT" for what Error::system_error holds (errno, on Windows GetLastError()); "UNKNOWN" for a rare one.
 */
const char* system_code_name(int system_error);

}  // namespace gguf
