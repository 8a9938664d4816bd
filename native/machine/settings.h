// Sizes that environment variables set.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace gguf {

/** The bytes of an environment variable that is a whole number of MiB; nothing for anything else. */
inline std::optional<uint64_t> megabytes_setting(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end;
  const unsigned long long megabytes = std::strtoull(text, &end, 10);
  if (*end != '\0' || megabytes >= UINT64_MAX >> 20) return std::nullopt;
  return uint64_t{megabytes} << 20;
}

}  // namespace gguf
