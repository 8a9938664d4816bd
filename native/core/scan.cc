#include "core/scan.h"

#include "core/text.h"

namespace gguf {

bool Scan::invalid(uint64_t offset, const std::string& what) {
  error = {ErrorCode::kInvalid, with_subject(what), offset};
  return false;
}

bool Scan::truncated(uint64_t offset, const std::string& what) {
  error = {ErrorCode::kTruncated, with_subject(what), offset};
  return false;
}

bool Scan::unsupported(uint64_t offset, const std::string& what) {
  error = {ErrorCode::kUnsupportedType, with_subject(what), offset};
  return false;
}

bool Scan::short_of(uint64_t offset, const std::string& field) {
  need_more = in.shortfall() == Shortfall::kNotLoaded;
  const uint64_t end = in.offset() + in.remaining();
  return truncated(offset, field + (need_more ? " is not loaded yet"
                                              : " runs past the end, at byte " + std::to_string(end)));
}

bool Scan::short_of_string(const std::string& field) {
  const uint64_t offset = in.offset();
  uint64_t n_bytes;
  if (!in.read_length(n_bytes)) return short_of(offset, "the length of " + field);
  if (in.skip(n_bytes)) n_bytes = 0;  // it fits: the file was changed just now
  return short_of(offset, field + " (" + std::to_string(n_bytes) + " bytes)");
}

std::string Scan::with_subject(const std::string& what) const {
  return *kind == 0 ? what : std::string(kind) + " " + quote_name(name) + ": " + what;
}

}  // namespace gguf
