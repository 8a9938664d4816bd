// Bringing a part of a file into memory, by several threads at once.
#pragma once

#include <cstdint>
#include <vector>

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

  const BlockSource source_;
  const bool lock_;
};

}  // namespace gguf
