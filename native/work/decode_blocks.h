// From where blocks are stored to numbers: the one place where the kernels are given a file to read. Runs on
// any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/file.h"
#include "core/result.h"
#include "dequant/formats.h"
#include "dequant/out.h"

namespace gguf {

/** Where blocks are: in memory, or in a file that has to be read. The caller keeps both for as long as they
   are used. */
struct BlockSource {
  const uint8_t* data = nullptr;  // the first block; nullptr where the file has to be read
  uint64_t mapped_bytes = 0;      // from `data` to the end of a mapped file; 0 for other memory
  const File* file = nullptr;     // of a mapping, or to be read
  uint64_t offset = 0;            // of the first block in the file
  bool big_endian = false;
};

/** Which blocks of a source become which numbers. */
struct BlockSelection {
  Format format;
  Out out = Out::kFloat32;
  uint64_t n_blocks = 0;       // of the result
  std::vector<uint64_t> rows;  // the rows that are decoded, one after the other,
  uint64_t row_blocks = 0;     // of so many blocks each; 0: blocks 0 to n_blocks - 1, and `rows` is empty

  uint64_t block_dst_bytes() const { return format.block_elements * out_bytes(out); }
  uint64_t n_elements() const { return n_blocks * format.block_elements; }
  uint64_t dst_bytes() const { return n_blocks * block_dst_bytes(); }
};

/** About how many bytes are read from a file, or written to an output, in one step. */
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

/**
 * Decodes `n_blocks` blocks of the result, from its block `first_block` on, to `dst`: to where these belong,
 * not to where the result starts. Blocks that are read from a file pass through `scratch`, which grows as
 * needed. Large results are written past the cache where their pages are present (see may_stream). kTruncated
 * where the blocks are not, or no longer, in the file. Throws bad_alloc.
 */
Status decode_blocks(const BlockSource& source, const BlockSelection& selection, uint64_t first_block,
                     uint64_t n_blocks, void* dst, std::vector<uint8_t>& scratch);

/**
 * Tells the system what a step of `step_bytes` that begins at byte `at` of the source will soon need, unless
 * that is in memory already. For mapped files.
 */
void read_ahead(const BlockSource& source, uint64_t at, uint64_t step_bytes);
/** Whether the blocks from `first_block` to before `end_block` were the file's when they were read. */
Status check_source(const BlockSource& source, const Format& format, uint64_t first_block,
                    uint64_t end_block);
/** What read_mapping gave up at: `offset` in the file. */
Error lost_mapping(uint64_t offset);

/** Whether an output of `n_bytes` is too large to be still in the cache when it is read: from 32 MiB on, or
   from what GGUF_NATIVE_STREAM_MB says. */
bool may_stream(uint64_t n_bytes);

}  // namespace gguf
