#include "work/decode_blocks.h"

#include <algorithm>

#include "core/checked.h"
#include "core/fault_guard.h"
#include "core/pages.h"
#include "dequant/dequant.h"
#include "machine/settings.h"

namespace gguf {

namespace {

/**
 * How far ahead of the work the system is told to read a mapped file. Where it reads 128 KiB ahead by itself
 * this makes cold files two to three times faster; more would get in the way of a system that reads
 * megabytes.
 */
constexpr uint64_t kBytesAhead = uint64_t{1} << 20;

/** On fresh pages streaming stores cost twice what plain ones do: these are for pages that are present. */
Store store_for(bool streams, const void* dst, uint64_t n_bytes) {
  return streams && pages_are_present(dst, to_size(n_bytes)) ? Store::kStreaming : Store::kPlain;
}

/** Decodes consecutive blocks of the source, in steps of about kChunkBytes. */
Status decode_run(const BlockSource& source, const BlockSelection& selection, bool streams,
                  uint64_t first_block, uint64_t n_blocks, uint8_t* dst, std::vector<uint8_t>& scratch) {
  const Format& format = selection.format;
  const uint64_t block_dst_bytes = selection.block_dst_bytes();
  const uint64_t largest_block = std::max<uint64_t>(format.block_bytes, block_dst_bytes);
  const uint64_t step_blocks = std::min(n_blocks, std::max<uint64_t>(1, kChunkBytes / largest_block));
  const auto step_bytes = to_size(step_blocks * format.block_bytes);
  if (source.data == nullptr && scratch.size() < step_bytes) scratch.resize(step_bytes);
  uint64_t at = first_block * format.block_bytes;
  while (n_blocks > 0) {
    const uint64_t count = std::min(n_blocks, step_blocks);
    const uint64_t src_bytes = count * format.block_bytes;
    const uint8_t* blocks;
    if (source.data == nullptr) {
      if (Status failure = source.file->read(source.offset + at, scratch.data(), src_bytes)) return failure;
      blocks = scratch.data();
    } else {
      if (streams) read_ahead(source, at, step_bytes);
      blocks = source.data + at;
    }
    const Store store = store_for(streams, dst, count * block_dst_bytes);
    const bool was_read = read_mapping(
        [&] { dequantize(format, selection.out, store, source.big_endian, blocks, count, dst); });
    if (!was_read) return lost_mapping(source.offset + at);
    at += src_bytes;
    dst += count * block_dst_bytes;
    n_blocks -= count;
  }
  return std::nullopt;
}

}  // namespace

/** For the first step of the source all of the kBytesAhead after it, later what its step adds to them. */
void read_ahead(const BlockSource& source, uint64_t at, uint64_t step_bytes) {
  const uint64_t end = std::min(at + step_bytes + kBytesAhead, source.mapped_bytes);
  const uint64_t begin = at == 0 ? 0 : at + kBytesAhead;
  if (begin >= end || pages_are_present(source.data + end - 1, 1)) return;
  will_read(source.data + begin, to_size(end - begin));
}

Status check_source(const BlockSource& source, const Format& format, uint64_t first_block,
                    uint64_t end_block) {
  if (source.data == nullptr || source.file == nullptr) return std::nullopt;
  return source.file->check(source.offset + first_block * format.block_bytes,
                            (end_block - first_block) * format.block_bytes);
}

Error lost_mapping(uint64_t offset) {
  return Error{ErrorCode::kTruncated, "the system could not read the mapped file", offset, 0};
}

Status decode_blocks(const BlockSource& source, const BlockSelection& selection, uint64_t first_block,
                     uint64_t n_blocks, void* dst, std::vector<uint8_t>& scratch) {
  if (n_blocks == 0) return std::nullopt;
  const bool streams = may_stream(selection.dst_bytes());
  auto* to = static_cast<uint8_t*>(dst);
  uint64_t end = first_block + n_blocks;  // of the blocks of the source that are read, in any order
  if (selection.row_blocks == 0) {
    if (Status failure = decode_run(source, selection, streams, first_block, n_blocks, to, scratch)) {
      return failure;
    }
  } else {
    end = 0;
    while (n_blocks > 0) {
      const uint64_t in_row = first_block % selection.row_blocks;
      const uint64_t row = selection.rows[to_size(first_block / selection.row_blocks)];
      const uint64_t from = row * selection.row_blocks + in_row;
      const uint64_t count = std::min(n_blocks, selection.row_blocks - in_row);
      if (Status failure = decode_run(source, selection, streams, from, count, to, scratch)) return failure;
      end = std::max(end, from + count);
      first_block += count;
      n_blocks -= count;
      to += count * selection.block_dst_bytes();
    }
  }
  // What a file loses is its end: where the last of them is there, so are all.
  return check_source(source, selection.format, end - 1, end);
}

bool may_stream(uint64_t n_bytes) {
  static const uint64_t least = megabytes_setting("GGUF_NATIVE_STREAM_MB").value_or(uint64_t{32} << 20);
  return n_bytes >= least;
}

}  // namespace gguf
