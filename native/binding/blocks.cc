#include "binding/blocks.h"

#include <algorithm>

namespace gguf::binding {

Status decode_blocks(const BlockSource& source, const Format& format, Out out, Store store,
                     uint64_t first_block, uint64_t n_blocks, void* dst, std::vector<uint8_t>& scratch) {
  if (n_blocks == 0) return std::nullopt;
  const uint64_t skipped_bytes = first_block * format.block_bytes;
  if (source.data != nullptr) {
    dequantize(format, out, store, source.big_endian, source.data + skipped_bytes, n_blocks, dst);
    return std::nullopt;
  }
  const uint64_t step = std::min(n_blocks, std::max<uint64_t>(1, kChunkBytes / format.block_bytes));
  const size_t out_block_bytes = format.block_elements * out_bytes(out);
  if (scratch.size() < step * format.block_bytes)
    scratch.resize(static_cast<size_t>(step * format.block_bytes));
  uint64_t offset = source.offset + skipped_bytes;
  uint8_t* to = static_cast<uint8_t*>(dst);
  for (uint64_t left = n_blocks; left > 0;) {
    const uint64_t count = std::min(left, step);
    if (Status failure = source.file->read(offset, scratch.data(), count * format.block_bytes))
      return failure;
    dequantize(format, out, store, source.big_endian, scratch.data(), count, to);
    offset += count * format.block_bytes;
    to += count * out_block_bytes;
    left -= count;
  }
  return std::nullopt;
}

Store store_for(uint64_t n_bytes, bool present) {
  // On fresh pages streaming stores cost twice what plain ones do; below this size the cache can still hold
  // the result.
  constexpr uint64_t kMinStreamedBytes = uint64_t{32} << 20;
  return present && n_bytes >= kMinStreamedBytes ? Store::kStreaming : Store::kPlain;
}

}  // namespace gguf::binding
