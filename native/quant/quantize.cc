#include "quant/quantize.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "dequant/blocks.h"
#include "dequant/half.h"

// Written so that compilers turn the loops over the 32 numbers of a block into vector instructions: no
// branches in them, and no sums or extremes over more than one lane.
namespace gguf {
namespace {

constexpr int kCount = 32;
constexpr int kLanes = 8;

/** The bits of |x|; larger numbers have larger ones, and a NaN the largest. */
inline int32_t magnitude_bits(float x) {
  return static_cast<int32_t>(bits_of_float(x) & 0x7fffffffu);
}

constexpr int32_t kInfinityBits = 0x7f800000;

/**
 * The whole part of x, as x86 converts it: 0 in the last byte, which is all that is used, where x is a NaN or
 * does not fit in 32 bits. C++ does not define that, and processors differ. ggml's reference leaves it open;
 * these are the bytes that it writes on x86.
 */
inline int32_t whole(float x) {
  const float fitting = std::fabs(x) < 0x1p31f ? x : 0.0f;
  return static_cast<int32_t>(fitting);
}

inline float inverse(float d) {
  return d != 0.0f ? 1.0f / d : 0.0f;
}

inline void put_half(uint8_t* dst, float x) {
  const uint16_t half = float_to_half(x);
  std::memcpy(dst, &half, sizeof half);
}

/** The bits of the greatest magnitude in a block, in which a NaN is beyond infinity, or is skipped. */
template <bool kSkipsNans>
int32_t most_magnitude_bits(const float* x) {
  int32_t lanes[kLanes] = {};
  for (int i = 0; i < kCount; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      int32_t bits = magnitude_bits(x[i + lane]);
      if constexpr (kSkipsNans) bits = bits > kInfinityBits ? 0 : bits;
      lanes[lane] = bits > lanes[lane] ? bits : lanes[lane];
    }
  }
  int32_t most = 0;
  for (int lane = 0; lane < kLanes; ++lane) most = lanes[lane] > most ? lanes[lane] : most;
  return most;
}

/** The first number of a block with the greatest magnitude, NaNs aside; 0 if all are 0 or NaN. */
float greatest(const float* x) {
  const int32_t most = most_magnitude_bits<true>(x);
  if (most == 0) return 0.0f;
  int i = 0;
  while (magnitude_bits(x[i]) != most) ++i;
  return x[i];
}

struct Range {
  float min, max;
};

/** The least and the greatest number of a block. NaNs are skipped; if there is nothing else, min is above
 * max. */
Range range_of(const float* x) {
  float least[kLanes], most[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    least[lane] = FLT_MAX;
    most[lane] = -FLT_MAX;
  }
  for (int i = 0; i < kCount; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float v = x[i + lane];
      least[lane] = v < least[lane] ? v : least[lane];
      most[lane] = v > most[lane] ? v : most[lane];
    }
  }
  Range range = {least[0], most[0]};
  for (int lane = 1; lane < kLanes; ++lane) {
    range.min = least[lane] < range.min ? least[lane] : range.min;
    range.max = most[lane] > range.max ? most[lane] : range.max;
  }
  // Of zeros with both signs, the first one counts. The minimum is stored, so its sign shows.
  if (range.min == 0.0f) {
    int i = 0;
    while (x[i] != 0.0f) ++i;
    range.min = x[i];
  }
  return range;
}

/** What ggml's reference takes for the greatest magnitude of a block: a NaN makes it forget what came before.
 */
float greatest_magnitude(const float* x) {
  const int32_t most = most_magnitude_bits<false>(x);
  if (most <= kInfinityBits) return float_of_bits(static_cast<uint32_t>(most));
  float amax = 0.0f;
  for (int i = 0; i < kCount; ++i) {
    const float magnitude = std::fabs(x[i]);
    amax = amax > magnitude ? amax : magnitude;
  }
  return amax;
}

/** Codes of 4 bits: j in the low half of byte j, j + 16 in the high one. */
inline void put_nibbles(uint8_t* dst, const uint8_t* codes) {
  for (int j = 0; j < 16; ++j) {
    dst[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 16] << 4));
  }
}

/** The fifth bits of codes: bit j of 32. */
inline void put_fifth_bits(uint8_t* dst, const uint8_t* codes) {
  uint32_t bits = 0;
  for (int j = 0; j < kCount; ++j) bits |= static_cast<uint32_t>((codes[j] >> 4) & 1) << j;
  std::memcpy(dst, &bits, sizeof bits);
}

/** Puts code(x[j]), but no more than kBits hold, for each number of the block. */
template <int kBits, class Block, class Code>
inline void put_codes(const float* x, Block* y, Code code) {
  constexpr int32_t kMost = (1 << kBits) - 1;
  uint8_t codes[kCount];
  for (int j = 0; j < kCount; ++j) {
    const int32_t c = whole(code(x[j]));
    codes[j] = static_cast<uint8_t>(c < kMost ? c : kMost);
  }
  put_nibbles(y->q, codes);
  if constexpr (kBits == 5) put_fifth_bits(y->qh, codes);
}

/** Codes around zero, of which the number of greatest magnitude gets the lowest. */
template <int kBits, class Block>
inline void quantize_centered(const float* x, Block* y) {
  constexpr int kMiddle = 1 << (kBits - 1);
  constexpr float kOffset = kMiddle + 0.5f;
  const float d = greatest(x) / -kMiddle;
  const float id = inverse(d);
  put_half(y->d, d);
  put_codes<kBits>(x, y, [id](float v) { return v * id + kOffset; });
}

/** Codes from the minimum up. */
template <int kBits, class Block>
inline void quantize_from_minimum(const float* x, Block* y) {
  const Range range = range_of(x);
  const float d = (range.max - range.min) / ((1 << kBits) - 1);
  const float id = inverse(d);
  put_half(y->d, d);
  put_half(y->m, range.min);
  put_codes<kBits>(x, y, [id, min = range.min](float v) { return (v - min) * id + 0.5f; });
}

inline void quantize_block(const float* x, BlockQ4_0* y) {
  quantize_centered<4>(x, y);
}
inline void quantize_block(const float* x, BlockQ5_0* y) {
  quantize_centered<5>(x, y);
}
inline void quantize_block(const float* x, BlockQ4_1* y) {
  quantize_from_minimum<4>(x, y);
}
inline void quantize_block(const float* x, BlockQ5_1* y) {
  quantize_from_minimum<5>(x, y);
}

void quantize_block(const float* x, BlockQ8_0* y) {
  const float d = greatest_magnitude(x) / 127;
  const float id = inverse(d);
  put_half(y->d, d);
  for (int j = 0; j < kCount; ++j) {
    // To the nearest, halves away from zero: what is added is the number below one half, because 0.5 itself
    // would round the number below 0.5 up to 1.
    const float v = x[j] * id;
    y->q[j] = static_cast<uint8_t>(whole(v + std::copysign(0x1.fffffep-2f, v)));
  }
}

template <class Block>
void quantize_blocks(const float* x, uint64_t n, uint8_t* dst) {
  for (; n > 0; --n, x += kCount, dst += sizeof(Block)) {
    quantize_block(x, reinterpret_cast<Block*>(dst));
  }
}

void copy_numbers(const float* x, uint64_t n, uint8_t* dst) {
  if (n > 0) std::memcpy(dst, x, static_cast<size_t>(n) * sizeof *x);
}

template <uint16_t (*kConvert)(float)>
void convert_numbers(const float* x, uint64_t n, uint8_t* dst) {
  for (uint64_t i = 0; i < n; ++i) {
    const uint16_t bits = kConvert(x[i]);
    std::memcpy(dst + i * sizeof bits, &bits, sizeof bits);
  }
}

using Quantizer = void (*)(const float* x, uint64_t n, uint8_t* dst);

Quantizer quantizer_of(const Format& format) {
  switch (format.index) {
    case kF32:
      return copy_numbers;
    case kF16:
      return convert_numbers<float_to_half>;
    case kBF16:
      return convert_numbers<float_to_bfloat16>;
    case kQ4_0:
      return quantize_blocks<BlockQ4_0>;
    case kQ4_1:
      return quantize_blocks<BlockQ4_1>;
    case kQ5_0:
      return quantize_blocks<BlockQ5_0>;
    case kQ5_1:
      return quantize_blocks<BlockQ5_1>;
    case kQ8_0:
      return quantize_blocks<BlockQ8_0>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_quantize(const Format& format) {
  return quantizer_of(format) != nullptr;
}

void quantize(const Format& format, const float* src, uint64_t n_blocks, uint8_t* dst) noexcept {
  quantizer_of(format)(src, n_blocks, dst);
}

}  // namespace gguf
