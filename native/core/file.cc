// What opening and reading have in common on all systems.
#include "core/file.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/checked.h"
#include "core/fault_guard.h"
#include "core/pages.h"

namespace gguf {

Result<std::shared_ptr<File>> File::open(const std::string& path, Access access) {
  try {
    return open_or_throw(path, access);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Status File::read(uint64_t offset, void* dst, uint64_t n_bytes) const {
  if (n_bytes == 0) return std::nullopt;
  if (offset > size_ || n_bytes > size_ - offset) return ended_early(size_);
  if (held_ == nullptr) return read_from_system(offset, static_cast<uint8_t*>(dst), n_bytes);
  std::memcpy(dst, held_.get() + offset, to_size(n_bytes));
  return std::nullopt;
}

void File::forget(uint64_t begin, uint64_t end) const {
  if (data_ == nullptr || held_ != nullptr || begin >= end || end > size_) return;
  forget_pages(data_ + begin, static_cast<size_t>(end - begin));
}

Status File::check(uint64_t offset, uint64_t n_bytes) const {
  if (n_bytes == 0 || held_ != nullptr) return std::nullopt;
  if (is_surely_whole(offset, n_bytes)) return std::nullopt;
  const uint64_t now = current_size();
  const uint64_t end = std::min(now, zeroed_from());
  if (offset <= end && n_bytes <= end - offset) return std::nullopt;
  if (end == now) return ended_early(end);
  // It was shorter for a while, or the system failed to read it.
  return Error{
      ErrorCode::kTruncated,
      "the file changed while it was open: what it had from byte " + std::to_string(end) + " on is lost", end,
      0};
}

bool File::is_surely_whole(uint64_t offset, uint64_t n_bytes) const {
  if (!kMappedReadsNeverFault || data_ == nullptr || zeroed_from() != size_) return false;
  if (offset > size_ || n_bytes > size_ - offset) return false;
  return data_[offset + n_bytes - 1] != 0;
}

Error File::ended_early(uint64_t end) const {
  return Error{ErrorCode::kTruncated,
               "the file ends at byte " + std::to_string(end) + "; it had " + std::to_string(size_) +
                   " bytes when it was opened",
               end, 0};
}

}  // namespace gguf
