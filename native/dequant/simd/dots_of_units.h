// Sums of products of the units of two rows of codes, by `dot` of their levels. For sets that gain nothing by
// another way: the last lines of their header include this.
#pragma once

namespace gguf {
namespace {
namespace simd {

template <class Levels>
GGUF_INLINE Bytes32 level_bytes(const Values<Levels>& v, int unit) {
  return level_bytes<Levels>(v, unit, v, unit + 1);
}

/** Of 4 x 32 bytes: unit k of a, then unit k of b. */
template <class Levels, class A, class B>
GGUF_INLINE DotSums<32> dot_rows(const A& a, const B& b, const DotColumns<32>& x) {
  return dot<32, kByteKind<Levels>>(level_bytes<Levels>(a, 0, b, 0), level_bytes<Levels>(a, 1, b, 1),
                                    level_bytes<Levels>(a, 2, b, 2), level_bytes<Levels>(a, 3, b, 3), x);
}

/** Of 4 x 32 bytes: units 0 and 1 of a, those of b, then units 2 and 3 of a, those of b. */
template <class Levels, class A, class B>
GGUF_INLINE DotSums<32> dot_pairs(const A& a, const B& b, const DotColumns<32>& x) {
  return dot<32, kByteKind<Levels>>(level_bytes<Levels>(a, 0), level_bytes<Levels>(b, 0),
                                    level_bytes<Levels>(a, 2), level_bytes<Levels>(b, 2), x);
}

}  // namespace simd
}  // namespace
}  // namespace gguf
