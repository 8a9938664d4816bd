// Bringing a part of a file into memory, by several threads at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/mutex.h"
#include "work/chunked_work.h"
#include "work/decode_blocks.h"

namespace gguf {

/** Its units are bytes of the source. */
class ChunkedWarming : public ChunkedWork {
 public:
  /** `lock`: whether a mapping stays in memory until it is closed. */
  ChunkedWarming(const BlockSource& source, uint64_t n_bytes, bool lock);

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;

  /** Locks all of the mapping, the first time. */
  Status lock();

  const BlockSource source_;
  const bool lock_;
  Mutex mutex_;
  std::optional<int> lock_error_ GGUF_GUARDED_BY(mutex_);  // once it was tried: the system's, or 0
};

}  // namespace gguf
