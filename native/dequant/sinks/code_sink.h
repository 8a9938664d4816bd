// The sink that stores levels as bytes, and their scales: for products with activations of 8 bits. A kernel
// tells everything about its format by what it hands to it; CodeFactsSink writes that down.
#pragma once

#include <type_traits>

#include "dequant/isa/kernel_table.h"
#include "dequant/kernels/put_blocks.h"

namespace gguf {
namespace {

template <class T, class... Ts>
constexpr bool kIsOneOf = (std::is_same_v<T, Ts> || ...);

/** Copies `n` scales, from the i-th on. */
template <class D>
GGUF_INLINE void copy_scales(float* to, const D& d, int i, int n) {
  GGUF_UNROLL
  for (int k = 0; k < n; ++k) to[k] = d[i + k];
}
GGUF_INLINE void copy_scales(float* to, const ScalesFrom& d, int i, int n) {
  std::memcpy(to, d.x + i, static_cast<size_t>(n) * sizeof(float));
}
GGUF_INLINE void copy_scales(float* to, const Scales& d, int i, int n) {
  copy_scales(to, ScalesFrom(d, 0), i, n);
}

/** Eight scales. */
template <class D>
GGUF_INLINE simd::Floats8 eight_scales(const D& d, int i) {
  return simd::floats_8(d[i], d[i + 1], d[i + 2], d[i + 3], d[i + 4], d[i + 5], d[i + 6], d[i + 7]);
}
GGUF_INLINE simd::Floats8 eight_scales(const ScalesFrom& d, int i) {
  return simd::load_8(d.x + i);
}
GGUF_INLINE simd::Floats8 eight_scales(const Scales& d, int i) {
  return simd::load_8(d.x + i);
}

// What stands for a number:
//
//   store_scales<kRun>(at, to, minima)   stores scales where those of a group belong
//   note(place, scales)                  remembers a scale that has no memory of its own
//   eight(i, scales), eight_minima(i)    the scales of eight runs, from the i-th after that of the number on

/** One scale for all. */
template <class L>
struct CodesOfOneScale {
  using Levels = L;
  static constexpr bool kAffine = false;
  float d;

  template <int kRun>
  GGUF_INLINE void store_scales(int at, float* to, float*) const {
    to[at / kRun] = d;
  }
  GGUF_INLINE void note(int place, float (&scales)[8]) const { scales[place] = d; }
  GGUF_INLINE simd::Floats8 eight(int, const float (&scales)[8]) const {
    return eight_scales<float[8]>(scales, 0);
  }
};

/** Scales in an array, from the i-th on. They are copied with the first of 256 weights, all together. */
template <class L, class D>
struct ScaledCodes {
  using Levels = L;
  static constexpr bool kAffine = false;
  const D& d;
  int i;

  template <int kRun>
  GGUF_INLINE void store_scales(int at, float* to, float*) const {
    if (at % 256 == 0) copy_scales(to + at / kRun, d, i, 256 / kRun);
  }
  GGUF_INLINE void note(int, float (&)[8]) const {}
  GGUF_INLINE simd::Floats8 eight(int from, const float (&)[8]) const { return eight_scales(d, i + from); }
};

template <class L, class D, class M>
struct AffineCodes {
  using Levels = L;
  static constexpr bool kAffine = true;
  const D& d;
  const M& m;
  int i;

  template <int kRun>
  GGUF_INLINE void store_scales(int at, float* to, float* minima) const {
    if (at % 256 != 0) return;
    copy_scales(to + at / kRun, d, i, 256 / kRun);
    copy_scales(minima + at / kRun, m, i, 256 / kRun);
  }
  GGUF_INLINE void note(int, float (&)[8]) const {}
  GGUF_INLINE simd::Floats8 eight(int from, const float (&)[8]) const { return eight_scales(d, i + from); }
  GGUF_INLINE simd::Floats8 eight_minima(int from) const { return eight_scales(m, i + from); }
};

/** The part of a sink that takes codes: `Sink` has take<kRun>(at, number, bytes), with the levels of 32
 * weights as simd::Bytes32. */
template <class Sink>
struct TakesCodes {
  static constexpr ToBytes kTo{};
  static constexpr bool kStraight = false;

  template <class Levels>
  static GGUF_INLINE CodesOfOneScale<Levels> scaled(float d) {
    return {d};
  }
  template <class Levels, class D>
  static GGUF_INLINE ScaledCodes<Levels, D> scaled(const D& d, int i) {
    return {d, i};
  }
  template <class Levels, class D, class M>
  static GGUF_INLINE AffineCodes<Levels, D, M> affine(const D& d, const M& m, int i) {
    return {d, m, i};
  }

  template <class Number, class... Values>
  GGUF_INLINE void put_codes(int at, const Number& number, const Values&... values) {
    sink().template take<32>(at, number, simd::level_bytes<typename Number::Levels>(values...));
  }
  template <class NumberOf, class A, class B>
  GGUF_INLINE void put_rows(int at, NumberOf number, const A& a, const B& b) {
    GGUF_UNROLL
    for (int k = 0; k < 4; ++k) put_codes(at + 32 * k, number(k), a, k, b, k);
  }
  template <class Number, class V>
  GGUF_INLINE void put_halves(int at, const Number& first, const Number&, const V& v, int unit) {
    sink().template take<16>(at, first, simd::level_bytes<typename Number::Levels>(v, unit));
  }
  /** Levels of the same bytes are made before one is taken, so that a compiler sees what they have in common.
   */
  template <class NumberOf, class A, class B>
  GGUF_INLINE void put_pairs(int at, NumberOf number, const A& a, const B& b) {
    using Levels = typename decltype(number(0))::Levels;
    GGUF_UNROLL
    for (int k = 0; k < 4; k += 2) {
      const simd::Bytes32 first = simd::level_bytes<Levels>(a, k), second = simd::level_bytes<Levels>(b, k);
      sink().template take<32>(at + 32 * k, number(k), first);
      sink().template take<32>(at + 32 * k + 32, number(k + 1), second);
    }
  }

 private:
  GGUF_INLINE Sink& sink() { return static_cast<Sink&>(*this); }
};

/** Stores codes, or only their scales; a short group is stored whole. */
template <bool kScalesOnly>
struct CodeSink : TakesCodes<CodeSink<kScalesOnly>> {
  UnpackedCodes to;
  int run = 0, level_bytes = 0;

  GGUF_INLINE explicit CodeSink(const UnpackedCodes& memory) : to(memory) {}

  template <int kRun, class Number>
  GGUF_INLINE void take(int at, const Number& number, const simd::Bytes32& bytes) {
    run = kRun;
    using Levels = typename Number::Levels;
    level_bytes = simd::kLevelBytes<simd::kByteKind<Levels>>;
    if constexpr (!kScalesOnly) simd::store_bytes<Levels>(to.bytes + at * level_bytes, bytes);
    number.template store_scales<kRun>(at, to.scales, to.minima);
  }
  GGUF_INLINE void next_group(int n) {
    to.bytes += n * level_bytes;
    to.scales += n / run;
    to.minima += n / run;
  }
  GGUF_INLINE void short_group() {}
};

/** An Unpacker of kernel_table.h. */
template <class Block, bool kScalesOnly>
void unpack_blocks(const uint8_t* src, uint64_t n_blocks, const UnpackedCodes& to) {
  CodeSink<kScalesOnly> sink(to);
  put_blocks(reinterpret_cast<const Block*>(src), n_blocks, sink);
}

/** Whether there are formats with minima whose levels are of a kind: CodeFactsSink looks at all. */
template <int kRun, int kKind>
constexpr bool kHasMinima =
    kRun == 16 ? kKind == simd::kByteKind<Unsigned<2>>
               : kKind == simd::kByteKind<Unsigned<4>> || kKind == simd::kByteKind<Unsigned<5>>;

struct CodeFactsSink : TakesCodes<CodeFactsSink> {
  CodeFacts facts{};

  template <int kRun, class Number>
  GGUF_INLINE void take(int, const Number&, const simd::Bytes32&) {
    using Levels = typename Number::Levels;
    constexpr int kBias = simd::kByteBias<Levels>, kKind = simd::kByteKind<Levels>;
    static_assert(!Number::kAffine || kHasMinima<kRun, kKind>, "tiles add them");
    facts = {kRun, Number::kAffine, kBias, simd::kSignedTiles ? 0 : kBias, kKind, simd::kLevelBytes<kKind>};
  }
  GGUF_INLINE void next_group(int) {}
  GGUF_INLINE void short_group() {}
};

/** What the kernel of a format says. */
template <class Block>
CodeFacts find_code_facts() {
  const Block blocks[kGroup<Block>] = {};
  Ahead<Block> ahead;
  ahead.read(blocks);
  CodeFactsSink sink;
  dequantize(blocks, ahead, sink);
  return sink.facts;
}

}  // namespace
}  // namespace gguf
