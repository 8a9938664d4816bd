// What the encoders of K-quants share: 256 numbers in sub-blocks of 16 or 32, whose scales (and minima) are
// codes themselves. Pictures of the blocks are above the kernels that dequantize them
// (dequant/kernels/k_quants.h).
//
// For a group of kLanes blocks:
// 1. search the scale of each sub-block: a lane is a sub-block (searches.h)
// 2. round the scales of each block: with importance, a lane is a block
// 3. round the numbers with these scales, and pack the codes: a lane is a number
//
// What differs with importance is the searches of 1. and 2.
#pragma once

#include "quant/encoders/groups.h"
#include "quant/encoders/searches.h"

namespace gguf {
namespace {
namespace lanes {

constexpr int kBlock = 256;

/** The sum of the squares of each block. */
GGUF_INLINE Float sums_of_squares(const float* x) {
  Float sum = splat(0.0f), column[kLanes];
  for (int i = 0; i < kBlock; i += kLanes) {
    transpose(x + i, kBlock, column);
    for (int c = 0; c < kLanes; ++c) sum += column[c] * column[c];
  }
  return sum;
}

/** The number of greatest magnitude, the first of several; 0 if all are 0 or NaN. */
GGUF_INLINE float greatest_of(const float* x, int n) {
  float magnitude = 0.0f, most = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float a = std::fabs(x[i]);
    if (a > magnitude) {
      magnitude = a;
      most = x[i];
    }
  }
  return most;
}

/** 2 * kLanes rows of kCount numbers: number j of each of them. */
template <int kCount>
GGUF_INLINE void load_columns(const float* rows, Float2* columns) {
  Float a[kCount], b[kCount];
  load_columns<kCount>(rows, a);
  load_columns<kCount>(rows + kLanes * kCount, b);
  for (int j = 0; j < kCount; ++j) columns[j] = Float2(a[j], b[j]);
}

/** Of each of 2 * kLanes consecutive sub-blocks, from number `first` of the group, its block's value. */
template <int kSubBlocks>
GGUF_INLINE Float2 of_blocks(const float* values, int first) {
  float of[2 * kLanes];
  for (int i = 0; i < 2 * kLanes; ++i) of[i] = values[(first + i) / kSubBlocks];
  return {load(of), load(of + kLanes)};
}

/**
 * The numbers of sub-blocks, from number `first` of the group, and how much errors count: their squares. With
 * importance more, the greater the number and sigma2 of its block, if there is sigma2.
 */
template <int kColumns>
GGUF_INLINE void load_weighted(const Group& group, const float* sigma2, int first, Float2* x, Float2* w) {
  load_columns<kColumns>(group.x + first * kColumns, x);
  if (group.importance == nullptr) {
    for (int i = 0; i < kColumns; ++i) w[i] = x[i] * x[i];
  } else {
    load_columns<kColumns>(group.importance + first * kColumns, w);
    if (sigma2 != nullptr) scale_weights<kColumns>(x, of_blocks<kBlock / kColumns>(sigma2, first), w);
  }
}

/** The same for formats with minima, where without importance large errors count less. */
template <int kColumns>
GGUF_INLINE void load_for_affine(const Group& group, const float* sigma2, int first, Float2* x, Float2* w) {
  load_weighted<kColumns>(group, sigma2, first, x, w);
  if (group.importance != nullptr) return;
  Float2 average = splat(0.0f);
  if constexpr (kColumns == 32) {
    for (int i = 0; i < kColumns; ++i) average += x[i] * x[i];
    average = sqrt(average / Float2(splat(static_cast<float>(kColumns))));
    for (int i = 0; i < kColumns; ++i) w[i] = average + abs(x[i]);
  } else {
    for (int i = 0; i < kColumns; ++i) w[i] = abs(x[i]);
  }
}

/** A value of each sub-block of a group, in order. */
template <int kSubBlocks>
struct Values {
  float of[kLanes * kSubBlocks];

  GGUF_INLINE void put(int first, Float values) { store(of + first, values); }
  GGUF_INLINE void put(int first, const Float2& values) {
    put(first, values.a);
    put(first + kLanes, values.b);
  }
  /** Those of one block. */
  GGUF_INLINE const float* block(int b) const { return of + b * kSubBlocks; }
  /** Value j of each block. */
  GGUF_INLINE void by_blocks(Float* values) const {
    for (int j = 0; j < kSubBlocks; ++j) {
      float value[kLanes];
      for (int b = 0; b < kLanes; ++b) value[b] = of[b * kSubBlocks + j];
      values[j] = load(value);
    }
  }
};

/** Scales or minima of a block as they are stored: codes, and what a code stands for. */
template <int kSubBlocks>
struct RoundedScales {
  uint8_t code[kSubBlocks];
  uint16_t unit;  // binary16
  int least = 0;  // what code 0 stands for

  GGUF_INLINE float value() const { return half_to_float(unit); }
  GGUF_INLINE int number(int j) const { return code[j] + least; }
  GGUF_INLINE void set(int j, int number) { code[j] = static_cast<uint8_t>(number - least); }
  GGUF_INLINE bool operator!=(const RoundedScales& other) const {
    return unit != other.unit || std::memcmp(code, other.code, sizeof code) != 0;
  }
  GGUF_INLINE bool fits(int most) const {
    for (int j = 0; j < kSubBlocks; ++j) {
      if (code[j] > most) return false;
    }
    return true;
  }
};

GGUF_INLINE void put_half(uint8_t* dst, uint16_t half) {
  std::memcpy(dst, &half, sizeof half);
}

/** Codes clamp(nearest_int((x + shift) / d)) of kColumns numbers, counted from kLeast. */
template <int kColumns, int kLeast, int kMost>
GGUF_INLINE void round_codes(const float* x, float shift, float d, uint8_t* codes) {
  for (int i = 0; i < kColumns; i += kLanes) {
    const Int code = nearest_int((load(x + i) + splat(shift)) / splat(d));
    store(codes + i, to_bytes(clamp(code, kLeast, kMost) - splat(kLeast)));
  }
}

/** Codes of two bits: byte i of 32 has those of numbers i, i + 32, i + 64 and i + 96. */
GGUF_INLINE void pack_crumbs(uint8_t* q, const uint8_t* codes) {
  for (int half = 0; half < 2; ++half, q += 32, codes += 128) {
    for (int i = 0; i < 32; ++i) {
      q[i] = static_cast<uint8_t>(codes[i] | codes[i + 32] << 2 | codes[i + 64] << 4 | codes[i + 96] << 6);
    }
  }
}

/** Codes of four bits: byte i of 32 has those of numbers i and i + 32. */
GGUF_INLINE void pack_nibbles(uint8_t* q, const uint8_t* codes) {
  for (int quarter = 0; quarter < 4; ++quarter, q += 32, codes += 64) {
    for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>((codes[i] & 15) | codes[i + 32] << 4);
  }
}

/** Bit kBit of every code: byte i of 32 has those of numbers i, i + 32, i + 64 and so on. */
template <int kBit>
GGUF_INLINE void pack_bits(uint8_t* q, const uint8_t* codes) {
  for (int i = 0; i < 32; ++i) q[i] = 0;
  for (int run = 0; run < 8; ++run) {
    for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>(q[i] | (codes[32 * run + i] >> kBit & 1) << run);
  }
}

}  // namespace lanes
}  // namespace
}  // namespace gguf
