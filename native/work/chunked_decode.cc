#include "work/chunked_decode.h"

#include <algorithm>
#include <utility>

namespace gguf {

ChunkedDecode::ChunkedDecode(const BlockSource& source, BlockSelection selection, void* dst)
    : ChunkedWork(selection.n_blocks, std::max<uint64_t>(1, kChunkBytes / selection.block_dst_bytes()),
                  {selection.format.block_elements, selection.format.block_bytes}),
      source_(source),
      selection_(std::move(selection)) {
  set_output(dst);
}

Status ChunkedDecode::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  uint8_t* const to = output() + first * selection_.block_dst_bytes();
  return decode_blocks(source_, selection_, first, count, to, scratch);
}

}  // namespace gguf
