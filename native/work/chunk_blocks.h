// The blocks of a chunk for work that uses each once, wherever they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/checked.h"
#include "work/decode_blocks.h"

namespace gguf {

/** Blocks `first` to `first + count - 1` of a source. */
struct ChunkBlocks {
  const BlockSource& source;
  const Format& format;
  uint64_t first;
  uint64_t count;

  uint64_t at() const { return first * format.block_bytes; }
  uint64_t n_bytes() const { return count * format.block_bytes; }
  /** How many bytes of memory find() needs. Throws bad_alloc. */
  size_t needed_bytes() const { return source.data == nullptr ? to_size(n_bytes()) : 0; }

  /**
   * Finds where they are: in memory, or read into `memory`. Of a mapping, `reads_ahead` tells the system what
   * will soon be needed. What they are used for has to be inside read_mapping, and check() comes afterwards.
   */
  Status find(bool reads_ahead, uint8_t* memory, const uint8_t** blocks) const {
    if (source.data == nullptr) {
      *blocks = memory;
      return source.file->read(source.offset + at(), memory, n_bytes());
    }
    if (reads_ahead) read_ahead(source, at(), n_bytes());
    *blocks = source.data + at();
    return std::nullopt;
  }
  Status check() const { return check_source(source, format, first, first + count); }
};

}  // namespace gguf
