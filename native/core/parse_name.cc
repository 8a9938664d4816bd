#include <string>

#include "core/checked.h"
#include "core/limits.h"
#include "core/parse_steps.h"
#include "core/text.h"

namespace gguf {

bool parse_name(Scan& scan, const char* kind, uint32_t index, uint64_t min_bytes, uint64_t max_bytes,
                NameStore& names, std::vector<uint32_t>& replaced, std::string_view& name) {
  const uint64_t start = scan.in.offset();
  const auto field = [&] { return std::string("the name of ") + kind + " " + std::to_string(index); };
  scan.kind = "";
  uint64_t n_bytes;
  if (!scan.in.read_length(n_bytes)) return scan.short_of(start, "the length of " + field());
  // Before the bytes are asked for: a caller who has not loaded them need not load what is refused anyway.
  const bool fits = n_bytes <= scan.in.remaining();
  if (fits && (n_bytes < min_bytes || n_bytes > max_bytes)) {
    return scan.invalid(start, field() + " has " + std::to_string(n_bytes) + " bytes; " +
                                   std::to_string(min_bytes) + " to " + std::to_string(max_bytes) +
                                   " are allowed");
  }
  const uint8_t* bytes;
  if (!scan.in.take(n_bytes, bytes)) {
    return scan.short_of(start, field() + " (" + std::to_string(n_bytes) + " bytes)");
  }
  name = names.add(bytes, to_size(n_bytes));
  scan.kind = kind;
  scan.name = name;
  if (!decodes_to_replacement(name)) return true;
  if (replaced.size() == kMaxReplacedNames) {
    return scan.invalid(start, "more than " + std::to_string(kMaxReplacedNames) +
                                   " names of its kind are not UTF-8 or hold U+FFFD");
  }
  replaced.push_back(index);
  return true;
}

}  // namespace gguf
