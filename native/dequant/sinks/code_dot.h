// The sink that multiplies levels with int8: the product of rows of blocks with one vector, while the levels
// are in registers. Its sums are steps 2 and 3 of the rule of integer_products.h.
#pragma once

#include "dequant/isa/kernel_table.h"
#include "dequant/put_order.h"
#include "dequant/sinks/code_sink.h"

namespace gguf {
namespace {

/**
 * Multiplies blocks with a vector. Every 256 weights `Rows` gets what is added to the partial sums of a row:
 * add<kRun, kAffine>(terms, offsets) with 8 or 16 of each.
 */
template <class Block, class Rows>
struct CodeDotSink : TakesCodes<CodeDotSink<Block, Rows>> {
  static constexpr bool kStraight = true;
  Rows rows;

  GGUF_INLINE CodeDotSink(const RoundedVector& vector, const Rows& first) : rows(first), x_(vector) {}

  template <int kRun, class Number, class... Values>
  GGUF_INLINE void take(int at, const Number& number, const Values&... values) {
    using Levels = typename Number::Levels;
    auto& sums = sums_of(std::integral_constant<int, kRun>());
    const int place = at / 32 % kPlaces;
    const simd::Bytes32 bytes = simd::level_bytes<Levels>(values...);
    if (place % 2 == 0) {
      bytes_[place / 2] = bytes;
    } else {
      sums.pairs[place / 2] =
          simd::dot<kRun, simd::kByteKind<Levels>>(bytes_[place / 2], bytes, x_.codes + column_ + (at - 32));
    }
    if (place % 4 == 3) {
      sums.fours[at / 128 % 2] = simd::join(sums.pairs[place / 2 - 1], sums.pairs[place / 2]);
    }
    number.note(at / 32 % 8, scales_);
    if (at % 256 == 224) finish<kRun>(at - 224, number, sums.fours);
  }

  /** The vector starts again with every row. */
  GGUF_INLINE void next_group(int n) {
    column_ += static_cast<uint64_t>(n);
    while (column_ >= rows.columns) column_ -= rows.columns;
  }
  GGUF_INLINE void short_group() {}

 private:
  // What waits until there are more. Most kernels put in ascending order: then four places are enough, which
  // are known even in a loop.
  static constexpr int kPlaces = kPutsInterleaved<Block> ? 8 : 4;
  template <int kRun>
  struct Sums {
    simd::DotSums<kRun> pairs[kPlaces / 2], fours[2];
  };
  GGUF_INLINE Sums<16>& sums_of(std::integral_constant<int, 16>) { return short_runs_; }
  GGUF_INLINE Sums<32>& sums_of(std::integral_constant<int, 32>) { return long_runs_; }

  /** What eight runs add to partial sums. */
  template <class Number>
  GGUF_INLINE void add_eight(uint64_t run, int scale, const Number& number, const simd::Ints8& sums,
                             simd::Floats8* terms, simd::Floats8* offsets) const {
    const simd::Floats8 scales = simd::mul(number.eight(scale, scales_), simd::load_8(x_.scales + run));
    if constexpr (!Number::kAffine && simd::kByteBias<typename Number::Levels> != 0) {
      *terms = simd::mul(scales, simd::to_floats(simd::add(sums, x_.corrections + run)));
    } else {
      *terms = simd::mul(scales, simd::to_floats(sums));
    }
    if constexpr (Number::kAffine) {
      *offsets = simd::mul(number.eight_minima(scale), simd::load_8(x_.offsets + run));
    }
  }

  /** 256 weights from `at` on are complete; `number` is that of the last 32. */
  template <int kRun, class Number>
  GGUF_INLINE void finish(int at, const Number& number, const simd::DotSums<kRun> (&fours)[2]) {
    const uint64_t run = (column_ + static_cast<uint64_t>(at)) / kRun;
    constexpr int kScale = -224 / kRun;
    simd::Floats8 terms[256 / kRun / 8], offsets[256 / kRun / 8];
    if constexpr (kRun == 32) {
      add_eight(run, kScale, number, simd::eight_sums(fours[0], fours[1]), terms, offsets);
    } else {
      simd::Ints8 sums[2];
      simd::sixteen_sums(fours[0], fours[1], sums);
      add_eight(run, kScale, number, sums[0], terms, offsets);
      add_eight(run + 8, kScale + 8, number, sums[1], terms + 1, offsets + 1);
    }
    rows.template add<kRun, Number::kAffine>(terms, offsets);
  }

  const RoundedVector x_;
  uint64_t column_ = 0;  // of the group's first weight
  simd::Bytes32 bytes_[kPlaces / 2];
  Sums<16> short_runs_;
  Sums<32> long_runs_;
  float scales_[8];
};

/** The 16 partial sums of a row. */
struct RowSums {
  simd::Floats8 next{}, other{};  // with runs of 32, every 256 weights are the other half of the sums

  template <int kRun, bool kAffine>
  GGUF_INLINE void add(const simd::Floats8* terms, const simd::Floats8* offsets) {
    next = simd::add(next, terms[0]);
    if constexpr (kAffine) next = simd::add(next, offsets[0]);
    if constexpr (kRun == 16) {
      other = simd::add(other, terms[1]);
      if constexpr (kAffine) other = simd::add(other, offsets[1]);
    }
  }
  GGUF_INLINE void exchange() {
    const simd::Floats8 was = next;
    next = other;
    other = was;
  }
  /** Adds them up, from lane `first` on. */
  GGUF_INLINE float product(int first, bool exchanged) const {
    float sums[32];
    for (int i = 0; i < 32; i += 16) {
      simd::store_8(sums + i, exchanged ? other : next);
      simd::store_8(sums + i + 8, exchanged ? next : other);
    }
    return simd::sum(simd::load_f32(sums + first % 16));
  }
};

/** Rows of blocks of 256 weights. */
struct RowsOfLargeBlocks {
  uint64_t columns;
  float* y;
  const float* y_end;
  uint64_t n_left = columns;  // of the row
  RowSums sums{};

  template <int kRun, bool kAffine>
  GGUF_INLINE void add(const simd::Floats8* terms, const simd::Floats8* offsets) {
    sums.add<kRun, kAffine>(terms, offsets);
    if constexpr (kRun == 32) sums.exchange();
    n_left -= 256;
    if (n_left > 0) return;
    *y++ = sums.product(0, false);  // which half is which makes no difference: they are added to each other
    sums = RowSums();
    n_left = columns;
  }
};

/**
 * Rows of smaller blocks: they may end within 256 weights. Sums stay where runs are: run r of a row that
 * starts in lane i is in lane (i + r) % 16.
 */
struct RowsOfSmallBlocks {
  uint64_t columns;
  float* y;
  const float* y_end;
  uint64_t n_left = columns;
  RowSums sums{};
  int start = 0;     // the lane of the row's first run
  bool odd = false;  // the upper half of the lanes is next

  template <int kRun, bool kAffine>
  GGUF_INLINE void add(const simd::Floats8* terms, const simd::Floats8* offsets) {
    if (n_left > 256) {
      sums.add<kRun, kAffine>(terms, offsets);
      n_left -= 256;
    } else {
      // Copies, since what a function gets by its address could not stay in registers elsewhere.
      constexpr int kRegisters = 256 / kRun / 8;
      simd::Floats8 own_terms[kRegisters], own_offsets[kRegisters];
      for (int i = 0; i < kRegisters; ++i) {
        own_terms[i] = terms[i];
        if constexpr (kAffine) own_offsets[i] = offsets[i];
      }
      RowsOfSmallBlocks rows = *this;
      rows.end_rows<kRun, kAffine>(own_terms, own_offsets);
      *this = rows;
    }
    if constexpr (kRun == 32) {
      sums.exchange();
      odd = !odd;
    }
  }

 private:
  /** Adds each row's share. */
  template <int kRun, bool kAffine>
  GGUF_NOINLINE void end_rows(const simd::Floats8* terms, const simd::Floats8* offsets) {
    constexpr int kRegisters = 256 / kRun / 8, kLanes = 8 * kRegisters;
    const int first_lane = odd ? 8 : 0;
    for (int first = 0; first < kLanes && y < y_end;) {
      const uint64_t n = n_left / kRun;
      const int end = n < static_cast<uint64_t>(kLanes - first) ? first + static_cast<int>(n) : kLanes;
      simd::Floats8 own_terms[kRegisters], own_offsets[kRegisters];
      for (int i = 0; i < kRegisters; ++i) {
        own_terms[i] = simd::keep(terms[i], first - 8 * i, end - 8 * i);
        if constexpr (kAffine) own_offsets[i] = simd::keep(offsets[i], first - 8 * i, end - 8 * i);
      }
      sums.add<kRun, kAffine>(own_terms, own_offsets);
      n_left -= static_cast<uint64_t>(end - first) * kRun;
      first = end;
      if (n_left > 0) continue;
      *y++ = sums.product(start, odd);
      sums = RowSums();
      n_left = columns;
      start = first_lane + end;
    }
  }
};

/** A CodeMultiplier of kernel_table.h. */
template <class Block>
void multiply_codes(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const RoundedVector& x,
                    float* y) {
  using Rows = std::conditional_t<kGroup<Block> == 1, RowsOfLargeBlocks, RowsOfSmallBlocks>;
  CodeDotSink<Block, Rows> sink(x, Rows{columns, y, y + n_rows});
  put_blocks(reinterpret_cast<const Block*>(rows), n_rows * (columns / Block::kElements), sink);
}

}  // namespace
}  // namespace gguf
