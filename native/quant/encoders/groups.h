// Blocks in groups, one to a lane: what an encoder does with the numbers of a block, it does with those of
// kLanes blocks at once.
#pragma once

#include "dequant/blocks.h"
#include "dequant/half.h"
#include "quant/lanes.h"

namespace gguf {
namespace {
namespace lanes {

/** A group of blocks. After n_blocks of them there are zeros. */
struct Group {
  const float* x;
  const float* importance;  // or null
  int n_blocks;
};

/** Calls `encode(group, y)` for groups of kBlocks blocks, the last completed with zeros. */
template <int kBlocks, class Block, class Encode>
GGUF_INLINE void for_groups(const float* x, const float* importance, uint64_t n_blocks, Block* y,
                            Encode encode) {
  constexpr int kNumbers = kBlocks * Block::kElements;
  float last_x[kNumbers], last_importance[kNumbers];
  while (n_blocks > 0) {
    const auto n = static_cast<int>(std::min<uint64_t>(n_blocks, kBlocks));
    if (n < kBlocks) {
      const auto complete = [n](const float* from, float* to) {
        const int given = n * Block::kElements;
        std::fill_n(std::copy_n(from, given, to), kNumbers - given, 0.0f);
        return to;
      };
      x = complete(x, last_x);
      if (importance != nullptr) importance = complete(importance, last_importance);
    }
    encode(Group{x, importance, n}, y);
    n_blocks -= static_cast<uint64_t>(n);
    x += kNumbers;
    y += n;
    if (importance != nullptr) importance += kNumbers;
  }
}

/** Calls `encode(x, importance, y)` likewise. It writes kBlocks blocks in each group. */
template <int kBlocks, class Block, class Encode>
GGUF_INLINE void for_whole_groups(const float* x, const float* importance, uint64_t n_blocks, Block* y,
                                  Encode encode) {
  for_groups<kBlocks>(x, importance, n_blocks, y, [=](const Group& group, Block* to) GGUF_INLINE_LAMBDA {
    Block last[kBlocks];
    const bool is_whole = group.n_blocks == kBlocks;
    encode(group.x, group.importance, is_whole ? to : last);
    if (!is_whole) std::memcpy(to, last, static_cast<size_t>(group.n_blocks) * sizeof *to);
  });
}

/** kLanes rows of kCount numbers: number j of each of them. */
template <int kCount>
GGUF_INLINE void load_columns(const float* rows, Float* columns) {
  for (int j = 0; j < kCount; j += kLanes) transpose(rows + j, kCount, columns + j);
}

/** The numbers of kLanes blocks. */
template <class Block>
struct Columns {
  Float column[Block::kElements];

  GGUF_INLINE explicit Columns(const float* x) { load_columns<Block::kElements>(x, column); }
  GGUF_INLINE const Float& operator[](int j) const { return column[j]; }
};

/** kWords words of four bytes of each lane to `to`, `to + stride` and so on, which may be any addresses. */
template <int kWords>
GGUF_INLINE void put_words(const Int* words, uint8_t* to, size_t stride) {
  int32_t lanes_of[kWords][kLanes];
  for (int w = 0; w < kWords; ++w) store(lanes_of[w], words[w]);
  for (int lane = 0; lane < kLanes; ++lane, to += stride) {
    int32_t of_lane[kWords];
    for (int w = 0; w < kWords; ++w) of_lane[w] = lanes_of[w][lane];
    std::memcpy(to, of_lane, sizeof of_lane);
  }
}

/** Each lane as binary16. */
GGUF_INLINE void put_halves(Float x, uint8_t* to, size_t stride) {
  float numbers[kLanes];
  uint16_t halves[kLanes];
  store(numbers, x);
  for (int lane = 0; lane < kLanes; ++lane) halves[lane] = float_to_half(numbers[lane]);
  for (int lane = 0; lane < kLanes; ++lane) std::memcpy(to + lane * stride, halves + lane, sizeof *halves);
}

/** What becomes a NaN where sums are infinite, with the sign that it has on x86. */
GGUF_INLINE Float with_sign_of_nan(Float x) {
  return select(x == x, x, float_of(splat(-0x400000)));
}

/** byte(0) to byte(3) as a word, byte(0) lowest. Bits of byte(3) beyond its eight do not count. */
template <class Byte>
GGUF_INLINE Int word_of(Byte byte) {
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

/** Codes of four bits of 32 columns, as words: byte j has those of columns j and j + 16. */
template <class Code>
GGUF_INLINE void pack_nibbles(Int* words, Code code) {
  for (int w = 0; w < 4; ++w) {
    words[w] = word_of([&](int i) GGUF_INLINE_LAMBDA { return code(4 * w + i) | code(4 * w + i + 16) << 4; });
  }
}

/** The sum of the squares of n numbers, in their order. */
inline float sum_of_squares(const float* x, uint64_t n) {
  float sum = 0.0f;
  for (uint64_t j = 0; j < n; ++j) sum += x[j] * x[j];
  return sum;
}

/** Where d is not 0, but so small that 1 / d is infinite. */
GGUF_INLINE Mask has_no_inverse(Float d) {
  return (abs(d) <= splat(0x1p-128f)) & (d != splat(0.0f));
}

/** 1 / d, or 0 where that is not finite. */
GGUF_INLINE Float inverse_or_0(Float d) {
  return select(abs(d) <= splat(0x1p-128f), splat(0.0f), splat(1.0f) / d);
}

/** The greatest magnitude of each lane. */
template <int kCount>
GGUF_INLINE Float greatest_magnitude(const Float* x) {
  Float most = splat(0.0f);
  for (int j = 0; j < kCount; ++j) most = max(most, abs(x[j]));
  return most;
}

/** To the nearest integer, halves away from zero. What is added is the number below one half, because 0.5
 * itself would round the number below 0.5 up to 1. */
GGUF_INLINE Int rounded(Float x) {
  const Float sign_of_x = float_of(bits_of(x) & splat(INT32_MIN));
  return to_int(x + float_of(bits_of(sign_of_x) | bits_of(splat(0x1.fffffep-2f))));
}

}  // namespace lanes

/** The encoder of formats that have no other: `encode_columns(columns, y)` for groups of kLanes blocks. */
template <class Block>
void encode(const float* x, const float*, uint64_t n_blocks, Block* y) {
  using namespace lanes;
  for_whole_groups<kLanes>(x, nullptr, n_blocks, y,
                           [](const float* numbers, const float*, Block* blocks)
                               GGUF_INLINE_LAMBDA { encode_columns(Columns<Block>(numbers), blocks); });
}

}  // namespace
}  // namespace gguf
