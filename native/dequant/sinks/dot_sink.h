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

/** The same for up to sixteen rows, whose sums are brought together: few instructions for each. */
struct SixteenRows {
  static constexpr uint64_t kRows = 16, kFloats = 16 * kRows;
  static constexpr uint64_t kFew = 6;  // rows that are faster one after the other

  GGUF_INLINE static void keep(float* sums, uint64_t row, const simd::Floats16& a, const simd::Floats16& b,
                               const simd::Floats16& c, const simd::Floats16& d) {
    simd::store_aligned(sums + 16 * row, simd::add(simd::add(a, c), simd::add(b, d)));
  }
  GGUF_INLINE static void add_up(float* sums, uint64_t n_rows, float* y) {
    if (n_rows < kFew) {
      for (uint64_t r = 0; r < n_rows; ++r) y[r] = simd::sum(simd::load_f32(sums + 16 * r)) + 0.0f;
      return;
    }
    std::memset(sums + 16 * n_rows, 0, static_cast<size_t>(kRows - n_rows) * 16 * sizeof *sums);
    alignas(64) float products[kRows];
    simd::sums(sums, products);
    for (uint64_t r = 0; r < kRows; ++r) products[r] += 0.0f;
    if (n_rows == kTileRows) {  // most often, and then without a call
      std::memcpy(y, products, kTileRows * sizeof *y);
    } else {
      std::memcpy(y, products, static_cast<size_t>(n_rows) * sizeof *y);
    }
  }
};

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

/** The sums of a vector with the numbers of `kNumbers`: 64, or one half of every 64. */
template <class Number, int kVectors, int kNumbers>
struct NumberDots {
  static constexpr int kParts = kNumbers / 16;
  const float* x;
  uint64_t x_stride;
  simd::Floats16 sums[kVectors][kParts] = {};

  GGUF_INLINE void put(const Number* b, uint64_t column) {
    GGUF_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const simd::Floats16 numbers = sixteen(b + 16 * part);
      GGUF_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const float* const at = x + static_cast<uint64_t>(v) * x_stride + column + 16 * part;
        sums[v][part] = simd::fma(numbers, simd::load_f32(at), sums[v][part]);
      }
    }
  }

  /** All of a row, or the half of every 64 numbers that starts with `start`. */
  GGUF_INLINE void put_row(const Number* row, uint64_t start, uint64_t columns) {
    uint64_t i = start;
    for (; i + kNumbers <= columns; i += 64) {
      const uintptr_t ahead = reinterpret_cast<uintptr_t>(row + i) + kPrefetchBytes;
      for (size_t line = 0; line < kNumbers * sizeof(Number); line += 64) prefetch(ahead + line);
      put(row + i, i);
    }
    if (i >= columns) return;
    Number last[kNumbers] = {};
    std::memcpy(last, row + i, static_cast<size_t>(columns - i) * sizeof(Number));
    put(last, i);
  }
};

/**
 * The same for formats whose blocks are single numbers, with one or two vectors: a row has any length, and is
 * often short. Product v of row r goes to y[v * y_stride + r].
 */
template <class Number, int kVectors>
void multiply_numbers(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const float* x,
                      uint64_t x_stride, float* y, uint64_t y_stride) {
  const Number* b = reinterpret_cast<const Number*>(rows);
  alignas(64) float sums[kVectors][SixteenRows::kFloats];
  while (n_rows > 0) {
    const uint64_t n = n_rows < SixteenRows::kRows ? n_rows : SixteenRows::kRows;
    for (uint64_t r = 0; r < n; ++r, b += columns) {
      if constexpr (kVectors * 64 / simd::kLanes <= simd::kTileSums) {
        NumberDots<Number, kVectors, 64> dots{x, x_stride};
        dots.put_row(b, 0, columns);
        GGUF_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          const simd::Floats16* const p = dots.sums[v];
          SixteenRows::keep(sums[v], r, p[0], p[1], p[2], p[3]);
        }
      } else {
        NumberDots<Number, kVectors, 32> lower{x, x_stride}, upper{x, x_stride};
        lower.put_row(b, 0, columns);
        upper.put_row(b, 32, columns);
        GGUF_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          const simd::Floats16 *const p = lower.sums[v], *const q = upper.sums[v];
          SixteenRows::keep(sums[v], r, p[0], p[1], q[0], q[1]);
        }
      }
    }
    GGUF_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      SixteenRows::add_up(sums[v], n, y + static_cast<uint64_t>(v) * y_stride);
    }
    y += n;
    n_rows -= n;
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
    multiply_numbers<Block, 1>(rows, n_rows, columns, x, 0, y, 0);
  } else {
    multiply_blocks<Block>(rows, n_rows, columns, x, y);
  }
}

/** A PairMultiplier of kernel_table.h; nullptr where it would not be faster than one vector after the other.
 */
template <class Number>
constexpr PairMultiplier pair_multiplier() {
  if constexpr (simd::kMultipliesInKernels) {
    return multiply_numbers<Number, 2>;
  } else {
    return nullptr;
  }
}

}  // namespace
}  // namespace gguf
