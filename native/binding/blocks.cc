#include "binding/blocks.h"

#include <algorithm>
#include <cstdlib>

#include "core/pages.h"

namespace gguf::binding {

namespace {

/** How many chunks ahead of the work the system is told to read a mapped file. */
constexpr uint64_t kChunksAhead = 4;

/** The steps of one decode_blocks. */
struct Steps {
  uint64_t n_blocks;
  uint64_t src_bytes;
  uint64_t dst_bytes;

  Steps(const Format& format, Out out, uint64_t most) {
    const uint64_t block_dst_bytes = format.block_elements * out_bytes(out);
    const uint64_t block_bytes = std::max<uint64_t>(format.block_bytes, block_dst_bytes);
    n_blocks = std::min(most, std::max<uint64_t>(1, kChunkBytes / block_bytes));
    src_bytes = n_blocks * format.block_bytes;
    dst_bytes = n_blocks * block_dst_bytes;
  }
};

/** On fresh pages streaming stores cost twice what plain ones do: these are for pages that are there. */
Store store_for(bool may_stream, const void* dst, uint64_t n_bytes) {
  return may_stream && pages_are_present(dst, static_cast<size_t>(n_bytes)) ? Store::kStreaming
                                                                            : Store::kPlain;
}

/** Tells the system of the step that comes kChunksAhead after the one at `at`, unless it is in memory
 * already. */
void read_ahead(const BlockSource& source, uint64_t at, uint64_t step_bytes) {
  const uint64_t ahead = at + kChunksAhead * step_bytes;
  if (ahead >= source.mapped_bytes) return;
  const uint8_t* const next = source.data + ahead;
  if (pages_are_present(next, 1)) return;
  will_read(next, static_cast<size_t>(std::min(step_bytes, source.mapped_bytes - ahead)));
}

uint64_t find_least_streamed_bytes() {
  if (const char* const text = std::getenv("GGUF_NATIVE_STREAM_MB")) {
    char* end;
    const unsigned long long megabytes = std::strtoull(text, &end, 10);
    if (*text != '\0' && *end == '\0' && megabytes < UINT64_MAX >> 20) return uint64_t{megabytes} << 20;
  }
  return uint64_t{32} << 20;
}

}  // namespace

Status decode_blocks(const BlockSource& source, const Format& format, Out out, bool may_stream,
                     uint64_t first_block, uint64_t n_blocks, void* dst, std::vector<uint8_t>& scratch) {
  if (n_blocks == 0) return std::nullopt;
  const Steps step(format, out, n_blocks);
  if (source.data == nullptr && scratch.size() < step.src_bytes)
    scratch.resize(static_cast<size_t>(step.src_bytes));
  uint64_t at = first_block * format.block_bytes;
  uint8_t* to = static_cast<uint8_t*>(dst);
  for (uint64_t left = n_blocks; left > 0;) {
    const uint64_t count = std::min(left, step.n_blocks);
    const uint64_t src_bytes = count * format.block_bytes;
    const uint64_t dst_bytes = count * format.block_elements * out_bytes(out);
    const uint8_t* blocks = source.data + at;
    if (source.data == nullptr) {
      if (Status failure = source.file->read(source.offset + at, scratch.data(), src_bytes)) return failure;
      blocks = scratch.data();
    } else if (may_stream) {
      read_ahead(source, at, step.src_bytes);
    }
    dequantize(format, out, store_for(may_stream, to, dst_bytes), source.big_endian, blocks, count, to);
    at += src_bytes;
    to += dst_bytes;
    left -= count;
  }
  return std::nullopt;
}

bool may_stream(uint64_t n_bytes) {
  static const uint64_t least = find_least_streamed_bytes();
  return n_bytes >= least;
}

}  // namespace gguf::binding
