// Keys and values of the tokens that attention looks at.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.h"
#include "dequant/formats.h"

namespace gguf {

/** What the vectors of a cache are like. */
struct CacheShape {
  Format format;  // F32, F16 or Q8_0
  uint64_t heads = 0;
  uint64_t key_width = 0, value_width = 0;  // numbers of one head: of Q8_0 whole blocks

  uint64_t row_bytes(uint64_t width) const { return width / format.block_elements * format.block_bytes; }
  uint64_t key_bytes() const { return heads * row_bytes(key_width); }  // of a token
  uint64_t value_bytes() const { return heads * row_bytes(value_width); }
};

/** One head's part of a page. Scales are there for Q8_0 alone: of numbers there are their codes of 8 bits. */
struct PageHead {
  const uint8_t* keys;        // [group of 16 positions][column][position]
  const float* key_scales;    // [group of 16 positions][run of 32 columns][position]
  const uint8_t* values;      // [position][column], completed with zeros to value_stride()
  const float* value_scales;  // [position][run of 32 columns]
};

/**
 * A cache grows by pages of kPositions, which its forks share until one of them writes to it. Keys lie so
 * that sixteen scores are computed together, values so that each is a run of memory.
 */
class KvCache {
 public:
  static constexpr uint64_t kPositions = 256, kGroup = 16, kRun = 32;

  /** The memory of a page; 0 where that is more than 2^31 bytes. */
  static uint64_t page_bytes(const CacheShape& shape);

  /** A shape whose page_bytes() is not 0. */
  explicit KvCache(const CacheShape& shape);

  const CacheShape& shape() const { return shape_; }
  uint64_t length() const { return length_; }
  uint64_t n_pages() const { return pages_.size(); }
  uint64_t value_stride() const { return (shape_.value_width + kGroup - 1) / kGroup * kGroup; }

  /**
   * Appends tokens, one after the other; of each there are the heads, one after the other. kRange for a
   * number that blocks cannot hold: then nothing is appended. Throws bad_alloc, likewise.
   */
  Status append(const float* keys, const float* values, uint64_t n_tokens);
  /** The same of blocks, as read() gives them. */
  void restore(const uint8_t* keys, const uint8_t* values, uint64_t n_tokens);
  /** The blocks of tokens that are there. */
  void read(uint64_t first, uint64_t n_tokens, uint8_t* keys, uint8_t* values) const;
  /** Forgets all tokens from this position on. */
  void truncate(uint64_t length);

  PageHead head_of(uint64_t page, uint64_t head) const;

 private:
  struct Page;
  struct Layout {
    uint64_t key_scales, values, value_scales, end;  // bytes from the start of a head
  };
  static Layout layout_of(const CacheShape& shape);
  /** The head of a position, to be written to. */
  uint8_t* writable_head(uint64_t position, uint64_t head);

  CacheShape shape_;
  Layout layout_;
  uint64_t number_bytes_;
  uint64_t length_ = 0;
  std::vector<std::shared_ptr<Page>> pages_;
};

}  // namespace gguf
