// What every instruction set's header starts from. System headers are included here, outside any target
// region.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dequant/bins.h"
#include "dequant/blocks.h"
#include "dequant/half.h"
#include "dequant/levels.h"
#include "dequant/out.h"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

// Kernels and primitives are inlined into one loop per format. GGUF_UNROLL unrolls a loop over units or
// groups, so that shift counts become constants. GGUF_KEEP_IN_MEMORY is for a small array that is written
// once and broadcast-loaded many times: it prevents the compiler from replacing the loads by a chain of
// shuffles, which all wait for one port. GGUF_KEEP_IN_REGISTER(type of register, variable) prevents the
// compiler from noticing that all lanes are equal; it would then compute one and broadcast it.
// GGUF_INLINE_LAMBDA stands between the parameters and the body of a lambda that is part of a kernel.
// What is between GGUF_SMALLER_BEGIN and GGUF_SMALLER_END is no faster with GCC's -O3 but half as large
// again, and compiled as with -O2. (Contraction is named once more, since older ones forget it here.)
#if defined(_MSC_VER) && !defined(__clang__)
#define GGUF_INLINE __forceinline
#define GGUF_NOINLINE __declspec(noinline)
#define GGUF_INLINE_LAMBDA
#define GGUF_UNROLL
#define GGUF_KEEP_IN_MEMORY(array)
#define GGUF_KEEP_IN_REGISTER(register, variable)
#elif defined(__clang__)
#define GGUF_INLINE inline __attribute__((always_inline))
#define GGUF_NOINLINE __attribute__((noinline))
#define GGUF_INLINE_LAMBDA __attribute__((always_inline))
#define GGUF_UNROLL _Pragma("clang loop unroll(full)")
#define GGUF_KEEP_IN_MEMORY(array) __asm__ volatile("" : "+m"(array))
#define GGUF_KEEP_IN_REGISTER(register, variable) __asm__("" : "+" register(variable))
#else
#define GGUF_INLINE inline __attribute__((always_inline))
#define GGUF_NOINLINE __attribute__((noinline))
#define GGUF_INLINE_LAMBDA __attribute__((always_inline))
#define GGUF_UNROLL _Pragma("GCC unroll 32")
#define GGUF_KEEP_IN_MEMORY(array) __asm__ volatile("" : "+m"(array))
#define GGUF_KEEP_IN_REGISTER(register, variable) __asm__("" : "+" register(variable))
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define GGUF_SMALLER_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"O2\", \"fp-contract=off\")")
#define GGUF_SMALLER_END _Pragma("GCC pop_options")
#else
#define GGUF_SMALLER_BEGIN
#define GGUF_SMALLER_END
#endif

namespace gguf {
namespace {

// What codes are loaded for. A set may choose another order of their bytes for each.
struct ToNumbers {};  // to be scaled
struct ToBytes {};    // to be levels of a byte each, in the order of the row

/** 64 levels Signed8 in memory, which are not moved to registers before they are used. */
struct SignedBytes {
  const uint8_t* p;
};

/** Columns of a vector of int8, as CodeDotSink's products take them: see RoundedVector. */
template <int kRun>
struct DotColumns {
  const int8_t *codes, *last_halves;
  /** Of the k-th 32 columns. */
  GGUF_INLINE const int8_t* first_half(int k) const { return codes + (kRun == 16 ? 32 : 16) * k; }
  GGUF_INLINE const int8_t* last_half(int k) const {
    return kRun == 16 ? codes + 32 * k + 16 : last_halves + 16 * k;
  }
};

/** Asks for the cache line at an address, where nothing need be: for the second-level cache, where the set
 * can say so. */
GGUF_INLINE void prefetch(uintptr_t address) {
  const void* const p = reinterpret_cast<const void*>(address);
#if !defined(_MSC_VER) || defined(__clang__)
  __builtin_prefetch(p, 0, 2);
#elif defined(_M_X64)
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
#else
  __prefetch(p);
#endif
}

/** Eight bytes as a word, the first byte lowest. */
GGUF_INLINE uint64_t word64(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

GGUF_INLINE uint32_t word32(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

GGUF_INLINE uint16_t word16(const uint8_t* p) {
  uint16_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

/** Eight nibbles, each to its own byte, the lowest first. */
constexpr uint64_t spread_nibbles(uint32_t nibbles) {
  uint64_t x = nibbles;
  x = (x | x << 16) & 0x0000ffff0000ffff;
  x = (x | x << 8) & 0x00ff00ff00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

/** Eight pairs of bits, each to its own byte, the lowest first. */
constexpr uint64_t spread_pairs(uint16_t pairs) {
  uint64_t x = pairs;
  x = (x | x << 24) & 0x000000ff000000ff;
  x = (x | x << 12) & 0x000f000f000f000f;
  return (x | x << 6) & 0x0303030303030303;
}

/** The same byte, eight times. */
constexpr uint64_t bytes8(uint8_t byte) {
  return 0x0101010101010101u * byte;
}

/** Sixteen bytes, the first of each word lowest. */
struct Bytes16 {
  uint64_t low, high;
};

/** For load_sixes: the bytes that it makes numbers of. */
GGUF_INLINE Bytes16 split_sixes(const uint8_t* p) {
  constexpr uint32_t kNibble = 0x0f0f0f0f, kTopPair = 0x30303030, kSix = 0x3f3f3f3f;
  const uint32_t s0 = word32(p), s4 = word32(p + 4), s8 = word32(p + 8);
  const uint32_t low = (s8 & kNibble) | (s0 >> 2 & kTopPair),
                 high = (s8 >> 4 & kNibble) | (s4 >> 2 & kTopPair);
  return {static_cast<uint64_t>(low) << 32 | (s0 & kSix), static_cast<uint64_t>(high) << 32 | (s4 & kSix)};
}

/** For join_sixes, likewise: eight bytes. */
GGUF_INLINE uint64_t joined_sixes(const uint8_t* nibbles, const uint8_t* pairs) {
  return spread_nibbles(word32(nibbles)) | spread_pairs(word16(pairs)) << 4;
}

/** Rows of a codebook, by their numbers. */
template <const auto& kBook, int kCount>
struct NumberedRows {
  alignas(64) uint16_t number[kCount];
  GGUF_INLINE void find() {}
};

/**
 * For join_rows: the position of the word with the field of each of sixteen 16-bit lanes, and the factor that
 * moves the field to the top of the lane.
 */
template <int Bits, int Step, int PerWord>
struct RowFields {
  static constexpr int kWordBytes = Step * PerWord <= 8 ? 1 : 2;
  static constexpr int kBytes = 16 / PerWord * kWordBytes;
  alignas(32) uint8_t byte[32] = {};
  alignas(32) uint16_t factor[16] = {};

  constexpr RowFields() {
    constexpr uint8_t kZero = 0x80;  // neither pshufb nor tbl finds a byte there
    for (int i = 0; i < 16; ++i) {
      const int first = i / PerWord * kWordBytes;
      byte[2 * i] = static_cast<uint8_t>(first);
      byte[2 * i + 1] = kWordBytes == 1 ? kZero : static_cast<uint8_t>(first + 1);
      factor[i] = static_cast<uint16_t>(1 << (16 - Bits - Step * (i % PerWord)));
    }
  }
};
template <class Fields>
constexpr Fields kRowFields{};

}  // namespace
}  // namespace gguf
