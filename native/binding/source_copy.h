// Block bytes in memory that JavaScript can take away, on their way to memory that it cannot.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "machine/pinned_memory.h"

namespace gguf::binding {

/** What is copied between two turns of the event loop: well under a millisecond of work. */
constexpr uint64_t kCopyPartBytes = uint64_t{4} << 20;

/**
 * Copies a range of a typed array part by part, so that the event loop gets its turns while much is copied,
 * and threads work on the first parts meanwhile. On the thread of its environment only.
 */
class SourceCopy {
 public:
  /** Of the `n_bytes` (not 0) at `data` in `array`; copies the first two parts at once. Throws bad_alloc. */
  SourceCopy(napi_env env, napi_value array, const uint8_t* data, uint64_t n_bytes);
  SourceCopy(const SourceCopy&) = delete;
  SourceCopy& operator=(const SourceCopy&) = delete;

  /** Where the copy is; its first copied_bytes() are there. */
  const uint8_t* data() const { return memory_->data(); }
  uint64_t copied_bytes() const { return copied_bytes_; }
  bool is_complete() const { return copied_bytes_ == n_bytes_; }
  /** Copies the next part. False where the bytes are no longer there: detached, moved or cut off. */
  bool copy_part(napi_env env);

 private:
  /** Copies the next part; `data` is where the range starts now. */
  void copy_from(const uint8_t* data);

  Napi::ObjectReference array_;  // empty once all is copied
  uint64_t offset_ = 0;          // of the range in the array
  uint64_t n_bytes_;
  uint64_t copied_bytes_ = 0;
  std::shared_ptr<PinnedMemory> memory_;
};

}  // namespace gguf::binding
