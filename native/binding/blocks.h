// From where a tensor's blocks are to numbers: the one place where binding/ lets the kernels read a file.
// Knows nothing of Node; runs on any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/file.h"
#include "core/result.h"
#include "dequant/dequant.h"

namespace gguf::binding {

/** Where blocks are. Borrows: whoever uses it sees to it that they stay. */
struct BlockSource {
  const uint8_t* data = nullptr;  // in memory; otherwise
  uint64_t mapped_bytes = 0;   // from data to the end of a mapped file: the system can be told to read ahead
  const File* file = nullptr;  // to be read,
  uint64_t offset = 0;         // from here on
  bool big_endian = false;
};

/** About how many bytes are read from a file, or written to an output, in one step. */
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

/**
 * Dequantizes `n_blocks` blocks from block `first_block` of `source` on to `dst`, in steps of about
 * kChunkBytes. Blocks to be read pass through `scratch`. `may_stream`: whole chunks whose pages are present
 * already are written past the cache. Fails only where the file cannot be read; where a mapped file was cut
 * off, that is for check_source to find out afterwards. Throws bad_alloc.
 */
Status decode_blocks(const BlockSource& source, const Format& format, Out out, bool may_stream,
                     uint64_t first_block, uint64_t n_blocks, void* dst, std::vector<uint8_t>& scratch);

/** Whether `n_bytes` of `source` from `first_byte` on were the file's when they were decoded. */
Status check_source(const BlockSource& source, uint64_t first_byte, uint64_t n_bytes);

/** Whether an output of `n_bytes` is too large to be found in the cache by whoever reads it next: from 32 MiB
   on, or from what GGUF_NATIVE_STREAM_MB says. */
bool may_stream(uint64_t n_bytes);

}  // namespace gguf::binding
