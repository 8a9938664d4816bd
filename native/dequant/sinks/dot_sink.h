// The sink that multiplies: the product of rows of blocks with one vector, while the numbers are in
// registers.
//
// The order of its sums is the rule of products.h.
#pragma once

#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/numbers.h"
#include "dequant/put_order.h"
#include "dequant/sinks/store_sink.h"

namespace gguf {
namespace {

/** Adds up 64 partial sums, 16 in each: 32 to 32, 16 to 16, and so on. */
GGUF_INLINE float add_up(const simd::Floats16& a, const simd::Floats16& b, const simd::Floats16& c,
                         const simd::Floats16& d) {
  return simd::sum(simd::add(simd::add(a, c), simd::add(b, d))) + 0.0f;  // never -0
}

/**
 * Multiplies numbers with those of `x`, a group after the other. Every other put goes to the other half of
 * the partial sums. The halves are exchanged rather than addressed: where a kernel is straight code, that is
 * only another name for a register.
 */
struct DotSink : TakesNumbers<DotSink> {
  const float* x;
  simd::Floats16 a{}, b{};  // the half that is next
  simd::Floats16 other_a{}, other_b{};

  GGUF_INLINE explicit DotSink(const float* vector) : x(vector) {}

  GGUF_INLINE void put(int at, const simd::Floats16& first, const simd::Floats16& second) {
    const simd::Floats16 p = simd::fma(first, simd::load_f32(x + at), a);
    const simd::Floats16 q = simd::fma(second, simd::load_f32(x + at + 16), b);
    a = other_a;
    b = other_b;
    other_a = p;
    other_b = q;
  }

  /** Which half is which makes no difference: they are added to each other. */
  GGUF_INLINE float product() const { return add_up(a, b, other_a, other_b); }
};

/**
 * Multiplies rows of blocks with a vector: a Multiplier of kernel_table.h. Blocks are taken in groups,
 * whatever the length of rows: a group in which a row ends is written to memory, and taken from there.
 */
template <class Block>
void multiply_blocks(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x, float* y) {
  constexpr uint64_t kBlocks = kGroup<Block>, kNumbers = kBlocks * Block::kElements;
  const Block* b = reinterpret_cast<const Block*>(rows);
  uint64_t n_blocks = n_rows * (columns / Block::kElements);  // from b on
  uint64_t n_left = columns;                                  // of the row
  Ahead<Block> ahead[2];
  int turn = 0;
  if (n_blocks >= kBlocks) ahead[turn].read(b);
  DotSink sink(x);
  while (n_blocks > 0) {
    if (n_blocks >= 2 * kBlocks) ahead[turn ^ 1].read(b + kBlocks);
    if (n_left >= kNumbers) {
      prefetch_after(b);
      dequantize(b, ahead[turn], sink);
      sink.x += kNumbers;
      n_left -= kNumbers;
    } else if constexpr (kBlocks > 1) {
      alignas(64) float numbers[kNumbers];
      const uint64_t n = n_blocks < kBlocks ? n_blocks : kBlocks;
      store_blocks<Block, Store::kPlain>(reinterpret_cast<const uint8_t*>(b), n, numbers);
      for (uint64_t i = 0; i < n * Block::kElements; i += 32) {
        if (n_left == 0) {
          *y++ = sink.product();
          sink = DotSink(x);
          n_left = columns;
        }
        sink.put(0, simd::load_f32(numbers + i), simd::load_f32(numbers + i + 16));
        sink.x += 32;
        n_left -= 32;
      }
      if (n < kBlocks) break;
    }
    if (n_left == 0) {
      *y++ = sink.product();
      sink = DotSink(x);
      n_left = columns;
    }
    turn ^= 1;
    b += kBlocks;
    n_blocks -= kBlocks;
  }
  if (n_left == 0) *y = sink.product();
}

/**
 * The same for formats whose blocks are single numbers: a row has any length, and is often short. The
 * processor itself recognises such a stream of numbers, and asks for what comes next.
 */
template <class Number>
void multiply_numbers(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x, float* y) {
  const Number* b = reinterpret_cast<const Number*>(rows);
  const uint64_t n_last = columns % 32;
  for (const float* const y_end = y + n_rows; y < y_end; ++y, b += columns) {
    DotSink sink(x);
    uint64_t i = 0;
    for (; i + 64 <= columns; i += 64, sink.x += 64) {
      sink.put(0, sixteen(b + i), sixteen(b + i + 16));
      sink.put(32, sixteen(b + i + 32), sixteen(b + i + 48));
    }
    if (i + 32 <= columns) {
      sink.put(0, sixteen(b + i), sixteen(b + i + 16));
      i += 32;
      sink.x += 32;
    }
    if (n_last > 0) {
      Number last[32] = {};
      std::memcpy(last, b + i, n_last * sizeof(Number));
      sink.put(0, sixteen(last), sixteen(last + 16));
    }
    *y = sink.product();
  }
}

/** The same where the sums do not fit into registers: all numbers are written to memory first. */
template <bool kInterleaved>
void multiply_stored(Kernel store, uint64_t block_elements, uint64_t block_bytes, const uint8_t* rows,
                     uint64_t n_rows, uint64_t columns, const float* x, float* y) {
  constexpr uint64_t kNumbers = 256;
  alignas(64) float numbers[kNumbers];
  for (const float* const y_end = y + n_rows; y < y_end; ++y) {
    DotSink sink(x);
    for (uint64_t n_left = columns; n_left > 0;) {
      const uint64_t n = n_left < kNumbers ? n_left : kNumbers;
      store(rows, n / block_elements, numbers);
      for (uint64_t i = n; i % 32 != 0; ++i) numbers[i] = 0;
      for (uint64_t i = 0; i < n; i += 32) {
        const int at = kInterleaved ? 32 * kInterleavedOrder[i / 32] : static_cast<int>(i);
        sink.put(at, simd::load_f32(numbers + at), simd::load_f32(numbers + at + 16));
      }
      sink.x += n;
      rows += n / block_elements * block_bytes;
      n_left -= n;
    }
    *y = sink.product();
  }
}

template <class Block>
void multiply_rows(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x, float* y) {
  if constexpr (!simd::kMultipliesInKernels) {
    multiply_stored<kPutsInterleaved<Block>>(store_blocks<Block, Store::kPlain>, Block::kElements,
                                             sizeof(Block), rows, n_rows, columns, x, y);
  } else if constexpr (Block::kElements == 1) {
    multiply_numbers<Block>(rows, n_rows, columns, x, y);
  } else {
    multiply_blocks<Block>(rows, n_rows, columns, x, y);
  }
}

}  // namespace
}  // namespace gguf
