#include "binding/blocks.h"

#include <algorithm>
#include <cstdlib>

#include "core/lost_pages.h"
#include "core/pages.h"

namespace gguf::binding {

namespace {

/**
 * How far ahead of the work the system is told to read a mapped file. Where it reads 128 KiB ahead by itself
 * this makes cold files two to three times faster; more would get in the way of a system that reads
 * megabytes.
 */
constexpr uint64_t kBytesAhead = uint64_t{1} << 20;

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

/**
 * Tells the system what a step that begins at `at` brings within kBytesAhead of the work: with the first step
 * all of that, later `step_bytes`. Not what is in memory already.
 */
void read_ahead(const BlockSource& source, uint64_t at, uint64_t step_bytes) {
  const uint64_t end = std::min(at + step_bytes + kBytesAhead, source.mapped_bytes);
  const uint64_t begin = at == 0 ? 0 : at + kBytesAhead;
  if (begin >= end || pages_are_present(source.data + end - 1, 1)) return;
  will_read(source.data + begin, static_cast<size_t>(end - begin));
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
    const uint8_t* blocks;
    if (source.data == nullptr) {
      if (Status failure = source.file->read(source.offset + at, scratch.data(), src_bytes)) return failure;
      blocks = scratch.data();
    } else {
      if (may_stream) read_ahead(source, at, step.src_bytes);
      blocks = source.data + at;
    }
    const Store store = store_for(may_stream, to, dst_bytes);
    const bool was_there =
        read_mapping([&] { dequantize(format, out, store, source.big_endian, blocks, count, to); });
    if (!was_there) {
      return Error{ErrorCode::kTruncated, "the system could not read the mapped file", source.offset + at, 0};
    }
    at += src_bytes;
    to += dst_bytes;
    left -= count;
  }
  return std::nullopt;
}

Status check_source(const BlockSource& source, uint64_t first_byte, uint64_t n_bytes) {
  if (source.data == nullptr || source.file == nullptr) return std::nullopt;
  return source.file->check(source.offset + first_byte, n_bytes);
}

bool may_stream(uint64_t n_bytes) {
  static const uint64_t least = find_least_streamed_bytes();
  return n_bytes >= least;
}

}  // namespace gguf::binding
