// A selection of blocks decoded by several threads at once.
#pragma once

#include <cstdint>
#include <vector>

#include "work/chunked_work.h"
#include "work/decode_blocks.h"

namespace gguf {

/** Decodes chunks of about kChunkBytes of the result. Its units are blocks. */
class ChunkedDecode : public ChunkedWork {
 public:
  /** `dst` may be null until set_output() is called. */
  ChunkedDecode(const BlockSource& source, BlockSelection selection, void* dst);

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;

  const BlockSource source_;
  const BlockSelection selection_;
};

}  // namespace gguf
