#include "work/chunked_warming.h"

#include "core/fault_guard.h"
#include "core/pages.h"
#include "core/system_codes.h"

namespace gguf {

namespace {

constexpr uint64_t kStepBytes = uint64_t{4} << 20;

}  // namespace

ChunkedWarming::ChunkedWarming(const BlockSource& source, uint64_t n_bytes, bool lock)
    : ChunkedWork(n_bytes, kStepBytes, {1, 1}), source_(source), lock_(lock) {}

Status ChunkedWarming::lock() {
  const MutexLock lock(mutex_);
  // All of it, and before anything is brought in: where a locked range ends, Linux drops pages that are
  // there.
  if (!lock_error_) lock_error_ = lock_pages(source_.data, static_cast<size_t>(n_elements()));
  if (*lock_error_ == 0) return std::nullopt;
  return Error{ErrorCode::kOutOfMemory, "the system does not lock " + std::to_string(n_elements()) +
                                            " bytes in memory (" + system_message(*lock_error_) +
                                            "): raise its limit (ulimit -l), or leave out lock"};
}

Status ChunkedWarming::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const uint64_t at = source_.offset + first;
  if (source_.data == nullptr) {  // a file that is read: the system keeps what it has read
    if (lock_) {
      return Error{ErrorCode::kRange,
                   "only a mapped file can be locked in memory: open it with access 'mmap'"};
    }
    if (scratch.size() < count) scratch.resize(static_cast<size_t>(count));
    return source_.file->read(at, scratch.data(), count);
  }
  if (lock_) {
    if (Status failure = lock()) return failure;
  }
  const uint8_t* const data = source_.data + first;
  if (!read_mapping([&] { bring_in(data, static_cast<size_t>(count)); })) return lost_mapping(at);
  return source_.file == nullptr ? std::nullopt : source_.file->check(at, count);
}

}  // namespace gguf
