// The sink that stores numbers.
#pragma once

#include "dequant/kernels/put_blocks.h"

namespace gguf {
namespace {

/** Writes binary32 numbers in one of the two ways; those of a completed group to `aside`. */
template <Store kStore>
struct StoreSink : TakesNumbers<StoreSink<kStore>> {
  float* y;
  float* aside = nullptr;

  GGUF_INLINE explicit StoreSink(float* numbers) : y(numbers) {}

  GGUF_INLINE void put(int at, const simd::Floats16& a, const simd::Floats16& b) {
    simd::store<kStore>(y + at, a, b);
  }
  GGUF_INLINE void next_group(int n_numbers) { y += n_numbers; }
  GGUF_INLINE void short_group() { y = aside; }
};

/** Passes blocks to a StoreSink, which stores the numbers of n_blocks, whether or not they are whole groups.
 */
template <class Block, class Sink>
GGUF_INLINE void put_stored(const uint8_t* src, uint64_t n_blocks, Sink& sink) {
  constexpr uint64_t kBlocks = kGroup<Block>;
  alignas(64) float aside[kBlocks * Block::kElements];
  float* const dst = sink.y;
  sink.aside = aside;
  put_blocks(reinterpret_cast<const Block*>(src), n_blocks, sink);
  const uint64_t n_last = n_blocks % kBlocks;
  if (n_last > 0) {
    std::memcpy(dst + (n_blocks - n_last) * Block::kElements, aside,
                static_cast<size_t>(n_last) * Block::kElements * sizeof(float));
  }
}

/** Dequantizes blocks to binary32: a Kernel of kernel_table.h. */
template <class Block, Store kStore>
void store_blocks(const uint8_t* src, uint64_t n_blocks, float* dst) {
  if constexpr (std::is_same_v<Block, BlockF32> && kStore == Store::kPlain) {
    // An empty tensor may have no memory, which memcpy does not take even then.
    if (n_blocks > 0) std::memcpy(dst, src, static_cast<size_t>(n_blocks) * sizeof(Block));
    return;
  }
  StoreSink<kStore> sink(dst);
  put_stored<Block>(src, n_blocks, sink);
}

}  // namespace
}  // namespace gguf
