// The sink that multiplies levels with int8: the product of rows of blocks with one vector, while the levels
// are in registers. Its sums are steps 2 and 3 of the rule of integer_products.h.
#pragma once

#include <string_view>
#include <type_traits>

#include "dequant/isa/kernel_table.h"
#include "dequant/put_order.h"
#include "dequant/sinks/code_sink.h"

namespace gguf {
namespace {

/** The 16 partial sums of a row. */
struct RowSums {
  simd::Floats8 next, other;  // with runs of 32, every 256 weights are the other half of the sums

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
  GGUF_INLINE float product() const { return simd::sum(simd::add(next, other)); }
};

/**
 * Rows, one after the other. Sums stay where runs are: run r of a row that starts in lane i is in lane
 * (i + r) % 16. That makes no difference to the product: step 4 of the rule always adds sums that are so many
 * lanes apart, counted in a circle.
 */
struct Rows {
  uint64_t columns;
  float* y;
  const float* y_end;
  uint64_t n_left;  // of the row; what is added first are the zeros of CodeDotSink::Pending
  RowSums sums;

  /** 8 or 16 of each, of 256 weights. `kSmall`: blocks have less than 256 weights, so rows may end within
   * them. */
  template <int kRun, bool kAffine, bool kSmall>
  GGUF_INLINE void add(const simd::Floats8* terms, const simd::Floats8* offsets) {
    if (!kSmall || n_left >= 256) {
      sums.add<kRun, kAffine>(terms, offsets);
      n_left -= 256;
      if (n_left == 0) end_row();
    } else {
      // Copies, since what a function gets by its address could not stay in registers elsewhere.
      constexpr int kRegisters = 256 / kRun / 8;
      simd::Floats8 own_terms[kRegisters], own_offsets[kRegisters];
      for (int i = 0; i < kRegisters; ++i) {
        own_terms[i] = terms[i];
        if constexpr (kAffine) own_offsets[i] = offsets[i];
      }
      Rows rows = *this;
      rows.end_rows<kRun, kAffine>(own_terms, own_offsets);
      *this = rows;
    }
    if constexpr (kRun == 32) sums.exchange();
  }

 private:
  GGUF_INLINE void end_row() {
    if (y < y_end) *y++ = sums.product();  // blocks that complete a group are no row
    sums = RowSums{};
    n_left = columns;
  }

  /** Adds each row's share. */
  template <int kRun, bool kAffine>
  GGUF_NOINLINE void end_rows(const simd::Floats8* terms, const simd::Floats8* offsets) {
    constexpr int kRegisters = 256 / kRun / 8, kLanes = 8 * kRegisters;
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
      if (n_left == 0) end_row();
    }
  }
};

/** Multiplies blocks with a few vectors. */
template <class Block, int kVectors>
struct CodeDotSink : TakesCodes<CodeDotSink<Block, kVectors>> {
  static constexpr bool kStraight = true;
  /** Where rows may end within the 256 weights that are added together. */
  static constexpr bool kSmall = kVectors == 1 && kGroup<Block> > 1;

  GGUF_INLINE CodeDotSink(const RoundedVector* x, uint64_t columns, float* y, uint64_t n_rows,
                          uint64_t y_stride) {
    for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
      float* const first = y + v * y_stride;
      x_[v] = x[v];
      rows_[v] = Rows{columns, first, first + n_rows, columns + 256, {}};
    });
  }

  template <int kRun, class Number>
  GGUF_INLINE void take(int at, const Number& number, const simd::Bytes32& bytes) {
    constexpr int kKind = simd::kByteKind<typename Number::Levels>;
    auto& sums = sums_of(std::integral_constant<int, kRun>());
    const int place = at / 32 % kPlaces;
    bytes_[place] = bytes;
    if (place % 4 == 3) {
      const simd::Bytes32* const w = bytes_ + (place - 3);
      for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
        sums[v][at / 128 % 2] = simd::dot<kRun, kKind>(w[0], w[1], w[2], w[3], columns<kRun>(v, at - 96));
      });
    }
    number.note(at / 32 % 8, scales_);
    if (at % 256 == 224) finish<kRun>(at - 224, number, sums);
  }
  template <class NumberOf, class A, class B>
  GGUF_INLINE void put_rows(int at, NumberOf number, const A& a, const B& b) {
    const auto last = number(3);
    using Levels = typename decltype(last)::Levels;
    for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
      long_runs_[v][at / 128 % 2] = simd::dot_rows<Levels>(a, b, columns<32>(v, at));
    });
    if (at % 256 == 128) finish<32>(at - 128, last, long_runs_);
  }
  template <class NumberOf, class A, class B>
  GGUF_INLINE void put_pairs(int at, NumberOf number, const A& a, const B& b) {
    const auto last = number(3);
    using Levels = typename decltype(last)::Levels;
    for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
      long_runs_[v][at / 128 % 2] = simd::dot_pairs<Levels>(a, b, columns<32>(v, at));
    });
    if (at % 256 == 128) finish<32>(at - 128, last, long_runs_);
  }

  /** The vector starts again with every row. */
  GGUF_INLINE void next_group(int n) {
    column_ += static_cast<uint64_t>(n);
    while (column_ >= rows_[0].columns) column_ -= rows_[0].columns;
  }
  GGUF_INLINE void short_group() {}

  /** Adds what is left. */
  GGUF_INLINE void end() {
    if (run_ == 16) end_run<16>();
    if (run_ == 32) end_run<32>();
  }

 private:
  /** Calls use(v) for each vector, with constants: arrays whose elements are known stay in registers. */
  template <class Use>
  static GGUF_INLINE void for_vectors(Use use) {
    use_all(use, std::make_integer_sequence<int, kVectors>());
  }
  template <class Use, int... kV>
  static GGUF_INLINE void use_all(Use use, std::integer_sequence<int, kV...>) {
    (use(std::integral_constant<int, kV>()), ...);
  }

  // What waits until there are more. Most kernels put in ascending order: then four places are enough, which
  // are known even in a loop.
  static constexpr int kPlaces = kPutsInterleaved<Block> ? 8 : 4;
  /** Of 128 weights each. */
  template <int kRun>
  using Sums = simd::DotSums<kRun>[kVectors][2];
  GGUF_INLINE Sums<16>& sums_of(std::integral_constant<int, 16>) { return short_runs_; }
  GGUF_INLINE Sums<32>& sums_of(std::integral_constant<int, 32>) { return long_runs_; }

  /** Of the vector, from a weight of the group on. */
  template <int kRun>
  GGUF_INLINE DotColumns<kRun> columns(int v, int at) const {
    if constexpr (kRun == 16) return {x_[v].codes + column_ + at, nullptr};
    const uint64_t half = column_ / 2;
    return {x_[v].codes + half + at / 2, x_[v].last_halves + half + at / 2};
  }

  /**
   * The last 256 weights, whose sums are not brought together before the next 256 are multiplied. A processor
   * would have to wait for each step of that; so it does them beside the next products.
   */
  template <int kRun>
  struct Pending {
    static constexpr int kRegisters = 256 / kRun / 8;
    Sums<kRun> sums{};
    simd::Floats8 scales[kVectors][kRegisters] = {}, offsets[kVectors][kRegisters] = {};
    uint64_t run = 0;
  };
  GGUF_INLINE Pending<16>& pending_of(std::integral_constant<int, 16>) { return pending_short_; }
  GGUF_INLINE Pending<32>& pending_of(std::integral_constant<int, 32>) { return pending_long_; }

  /** The sums of runs. */
  static GGUF_INLINE void sums_of_runs(const simd::DotSums<32> (&of_128)[2], simd::Ints8 (&sums)[1]) {
    sums[0] = simd::eight_sums(of_128[0], of_128[1]);
  }
  static GGUF_INLINE void sums_of_runs(const simd::DotSums<16> (&of_128)[2], simd::Ints8 (&sums)[2]) {
    simd::sixteen_sums(of_128[0], of_128[1], sums);
  }

  template <int kRun, bool kAffine, bool kCorrects>
  GGUF_INLINE void add_pending() {
    constexpr int kRegisters = Pending<kRun>::kRegisters;
    const Pending<kRun>& pending = pending_of(std::integral_constant<int, kRun>());
    for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
      simd::Ints8 sums[kRegisters];
      sums_of_runs(pending.sums[v], sums);
      simd::Floats8 terms[kRegisters];
      for (int i = 0; i < kRegisters; ++i) {
        if constexpr (kCorrects) sums[i] = simd::add(sums[i], x_[v].corrections + pending.run + 8 * i);
        terms[i] = simd::mul(pending.scales[v][i], simd::to_floats(sums[i]));
      }
      rows_[v].template add<kRun, kAffine, kSmall>(terms, pending.offsets[v]);
    });
  }

  template <int kRun>
  GGUF_INLINE void end_run() {
    if (affine_) {
      add_pending<kRun, true, false>();
    } else {
      add_pending<kRun, false, true>();  // corrections are zeros where there is no bias
    }
  }

  /** 256 weights from `at` on are complete; `number` is that of the last 32. */
  template <int kRun, class Number>
  GGUF_INLINE void finish(int at, const Number& number, const Sums<kRun>& sums_of_128) {
    add_pending<kRun, Number::kAffine, !Number::kAffine && simd::kByteBias<typename Number::Levels> != 0>();
    run_ = kRun;
    affine_ = Number::kAffine;
    Pending<kRun>& pending = pending_of(std::integral_constant<int, kRun>());
    for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
      pending.sums[v][0] = sums_of_128[v][0];
      pending.sums[v][1] = sums_of_128[v][1];
    });
    pending.run = column_ / kRun + static_cast<uint64_t>(at / kRun);
    for (int i = 0; i < Pending<kRun>::kRegisters; ++i) {
      const int scale = 8 * i - 224 / kRun;
      const uint64_t run = pending.run + static_cast<uint64_t>(8 * i);
      for_vectors([&](auto v) GGUF_INLINE_LAMBDA {
        pending.scales[v][i] = simd::mul(number.eight(scale, scales_), simd::load_8(x_[v].scales + run));
        if constexpr (Number::kAffine) {
          pending.offsets[v][i] = simd::mul(number.eight_minima(scale), simd::load_8(x_[v].offsets + run));
        }
      });
    }
  }

  RoundedVector x_[kVectors];
  Rows rows_[kVectors];
  uint64_t column_ = 0;  // of the group's first weight
  simd::Bytes32 bytes_[kPlaces];
  Sums<16> short_runs_;
  Sums<32> long_runs_;
  int run_ = 0;  // what the kernel puts, once it has
  bool affine_ = false;
  Pending<16> pending_short_{};
  Pending<32> pending_long_{};
  float scales_[8];
};

/** Of the sets that multiply in kernels, NEON has four lanes. */
constexpr bool kIsX86 = simd::kMultipliesCodesInKernels && simd::kLanes >= 8;

/** FormatKernels::most_dots: as many as take less time one or two at a time, decoded each time, than in a
 * tile, which transposes rows. Measured for 1,024 and 4,096 columns on a Zen 5; WebAssembly in V8 on a
 * Cascade Lake, without and with relaxed instructions. */
template <class Block>
constexpr uint64_t most_dots() {
  constexpr bool kIsAvx512 = simd::kLanes == 16, kHasManyKinds = simd::kByteKinds > 1;
  constexpr bool kIsWasm = std::string_view(simd::kName) == "wasm";
  // In WebAssembly every format; elsewhere those that decode slowly.
  if (kIsWasm || kIsOneOf<Block, BlockIQ1_S, BlockIQ1_M, BlockIQ2_XXS, BlockIQ2_XS, BlockIQ2_S, BlockIQ3_XXS,
                          BlockIQ3_S, BlockTQ1_0>) {
    return 1;
  }
  if (!kIsX86) return 2;
  if (kHasManyKinds && kIsOneOf<Block, BlockQ8_1, BlockQ8_K, BlockIQ4_XS>) return 4;
  if ((kHasManyKinds || kIsAvx512) && kIsOneOf<Block, BlockQ8_0>) return 4;
  if (!kIsAvx512 && kIsOneOf<Block, BlockQ3_K, BlockQ5_0, BlockQ5_1, BlockQ1_0, BlockQ2_0>) return 1;
  return kIsOneOf<Block, BlockTQ2_0> ? 3 : 2;
}

/** A CodeMultiplier of kernel_table.h. */
template <class Block, int kVectors>
void multiply_codes(const uint8_t* rows, uint64_t n_rows, uint64_t columns, const RoundedVector* x, float* y,
                    uint64_t y_stride) {
  CodeDotSink<Block, kVectors> sink(x, columns, y, n_rows, y_stride);
  put_blocks(reinterpret_cast<const Block*>(rows), n_rows * (columns / Block::kElements), sink);
  sink.end();
}

/** Two vectors at a time, for the formats that most models have: each set would have some KB for every other
 * one. */
template <class Block>
constexpr CodeMultiplier two_multiplier() {
  if constexpr (kIsX86 &&
                kIsOneOf<Block, BlockQ4_0, BlockQ8_0, BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockIQ4_XS>) {
    return multiply_codes<Block, 2>;
  }
  return nullptr;
}

/** How vectors are multiplied one after the other. */
template <class Block>
constexpr void take_multipliers(FormatKernels& kernels) {
  if constexpr (simd::kMultipliesCodesInKernels) {
    kernels.multiply_codes = multiply_codes<Block, 1>;
    kernels.multiply_two = two_multiplier<Block>();
  }
  kernels.most_dots = most_dots<Block>();
}

}  // namespace
}  // namespace gguf
