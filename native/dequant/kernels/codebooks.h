// The codebook formats: 256 weights per block, eight groups of 32. Weights are not stored one by one: a row
// number represents four or eight of them, and signs are stored separately.
//
//   G[i]      row i of the format's codebook (codebooks.h), as levels (levels.h)
//   sign(s)   for weight k of a row: -1 if bit k of s is set, else 1
//
// Row numbers, signs and scales of the whole block are first unpacked into plain arrays, in loops that
// compilers vectorize; then 64 weights at a time are gathered.
#pragma once

#include "dequant/codebooks.h"
#include "dequant/kernels/kernel.h"

namespace gguf {
namespace {

/** The signs of four rows of eight, seven bits each: the eighth makes the number of minus signs even. */
GGUF_INLINE uint32_t signs_of_sevens(uint32_t sevens) {
  const uint32_t x =
      (sevens & 0x7f) | (sevens << 1 & 0x7f00) | (sevens << 2 & 0x7f0000) | (sevens << 3 & 0x7f000000);
  uint32_t parity = x ^ x >> 4;  // of each byte, in its lowest bit
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return x | (parity & 0x01010101) << 7;
}

/** What `Ahead` of a format says of it: its levels, of how many weights each scale is, and each row. */
template <class Its, int Run, int Columns = 8>
struct CodebookFormat {
  using Levels = Its;
  static constexpr int kRun = Run, kColumns = Columns;
};

/** 64 codes, the i-th time. */
template <class Levels, int Columns, class Rows, class To>
GGUF_INLINE auto gather(const Rows& rows, int i, const uint8_t* signs, To to) {
  if constexpr (Columns == 8) {
    return simd::gather8<Levels>(rows, 8 * i, signs + 8 * i, to);
  } else {
    return simd::gather16<Levels>(rows, 16 * i, signs + 8 * i, to);
  }
}

/** Every format: 64 weights at a time. */
template <class Block, class Sink, class Levels = typename Ahead<Block>::Levels>
GGUF_INLINE void dequantize(const Block* b, const Ahead<Block>& ahead, Sink& y) {
  repeat<4>(y, [&](int i) GGUF_INLINE_LAMBDA {
    const auto codes = gather<Levels, Ahead<Block>::kColumns>(ahead.rows, i, ahead.signs_of(b), Sink::kTo);
    const auto v = simd::values<Levels>(codes);
    const auto number = [&](int k) GGUF_INLINE_LAMBDA { return Sink::template scaled<Levels>(ahead.d, k); };
    if constexpr (Ahead<Block>::kRun == 32) {
      y.put_codes(64 * i, number(2 * i), v, 0);
      y.put_codes(64 * i + 32, number(2 * i + 1), v, 2);
    } else {
      y.put_halves(64 * i, number(4 * i), number(4 * i + 1), v, 0);
      y.put_halves(64 * i + 32, number(4 * i + 2), number(4 * i + 3), v, 2);
    }
  });
}

// IQ2_XXS 0   2               66
//         | d | groups        |        a group g: A = u32 at 8g, B = u32 at 8g + 4
//
//   D = d * (0.5 + (B >> 28)) * 0.25
//   y[32g + 8l + k] = D * G[byte l of A][k] * sign(the seven bits of B from 7l on)        l < 4, k < 8
template <>
struct Ahead<BlockIQ2_XXS> : CodebookFormat<Iq2, 32> {
  simd::BookRows<kIq2xxsBook, 32> rows;
  uint8_t signs[32];
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ2_XXS*) const { return signs; }
  GGUF_INLINE void read(const BlockIQ2_XXS* b) {
    uint32_t group_rows[8], group_signs[8], scales[16] = {};
    for (int g = 0; g < 8; ++g) {
      const uint32_t word = word32(b->groups + 8 * g + 4);
      group_rows[g] = word32(b->groups + 8 * g);
      group_signs[g] = signs_of_sevens(word);
      scales[g] = word >> 28;
    }
    uint8_t numbers[32];
    std::memcpy(numbers, group_rows, sizeof numbers);
    for (int i = 0; i < 32; ++i) rows.number[i] = numbers[i];
    rows.find();
    std::memcpy(signs, group_signs, sizeof signs);
    d.set(simd::mul(simd::mul(simd::add(simd::load_int32(scales), 0.5f), simd::half(b->d)), 0.25f));
  }
};

// IQ2_XS  0   2               66       74
//         | d | rows          | scales |        rows: w = u16 at 2*(4g + l)
//
//   D = d * (0.5 + (l < 2 ? lo : hi)(scales[g])) * 0.25
//   y[32g + 8l + k] = D * G[w & 511][k] * sign(the seven bits w >> 9)        g < 8, l < 4, k < 8
template <>
struct Ahead<BlockIQ2_XS> : CodebookFormat<Iq2, 16> {
  simd::BookRows<kIq2xsBook, 32> rows;
  uint8_t signs[32];
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ2_XS*) const { return signs; }
  GGUF_INLINE void read(const BlockIQ2_XS* b) {
    for (int i = 0; i < 32; ++i) {
      const uint16_t word = word16(b->rows + 2 * i);
      const uint16_t seven = word >> 9;
      uint16_t parity = seven ^ seven >> 4;
      parity ^= parity >> 2;
      parity ^= parity >> 1;
      rows.number[i] = word & 511;
      signs[i] = static_cast<uint8_t>(seven | parity << 7);
    }
    rows.find();
    const auto scales =
        simd::int8x16(spread_nibbles(word32(b->scales)), spread_nibbles(word32(b->scales + 4)));
    d.set(simd::mul(simd::mul(simd::add(scales, 0.5f), simd::half(b->d)), 0.25f));
  }
};

// IQ2_S   0   2      34      66          74       82
//         | d | rows | signs | rows_high | scales |
//
//   D as in IQ2_XS; row = rows[4g + l] | (bits 2l and 2l+1 of rows_high[g]) << 8
//   y[32g + 8l + k] = D * G[row][k] * sign(signs[4g + l])        g < 8, l < 4, k < 8
template <>
struct Ahead<BlockIQ2_S> : CodebookFormat<Iq2, 16> {
  simd::BookRows<kIq2sBook, 32> rows;
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ2_S* b) const { return b->signs; }
  GGUF_INLINE void read(const BlockIQ2_S* b) {
    for (int i = 0; i < 32; i += 16) {
      simd::join_rows<2, 2, 4>(rows.number + i, b->rows + i, b->rows_high + i / 4);
    }
    rows.find();
    const auto scales =
        simd::int8x16(spread_nibbles(word32(b->scales)), spread_nibbles(word32(b->scales + 4)));
    d.set(simd::mul(simd::mul(simd::add(scales, 0.5f), simd::half(b->d)), 0.25f));
  }
};

// IQ3_XXS 0   2               66                 98
//         | d | rows          | signs_and_scales |        a group g: B = u32 at 4g
//
//   D = d * (0.5 + (B >> 28)) * 0.5
//   y[32g + 8l + k], k < 8: the four of D * G[rows[8g + 2l]], then the four of D * G[rows[8g + 2l + 1]],
//   with sign(the seven bits of B from 7l on)        l < 4
template <>
struct Ahead<BlockIQ3_XXS> : CodebookFormat<Iq3xxs, 32, 4> {
  simd::BookRows<kIq3xxsBook, 64> rows;
  uint8_t signs[32];
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ3_XXS*) const { return signs; }
  GGUF_INLINE void read(const BlockIQ3_XXS* b) {
    for (int i = 0; i < 64; ++i) rows.number[i] = b->rows[i];
    rows.find();
    uint32_t group_signs[8], scales[16] = {};
    for (int g = 0; g < 8; ++g) {
      const uint32_t word = word32(b->signs_and_scales + 4 * g);
      group_signs[g] = signs_of_sevens(word);
      scales[g] = word >> 28;
    }
    std::memcpy(signs, group_signs, sizeof signs);
    d.set(simd::mul(simd::mul(simd::add(simd::load_int32(scales), 0.5f), simd::half(b->d)), 0.5f));
  }
};

// IQ3_S   0   2               66          74      106      110
//         | d | rows          | rows_high | signs | scales |
//
//   D = d * (1 + 2 * (g even ? lo : hi)(scales[g/2]))
//   row = rows[8g + p] | (bit p of rows_high[g]) << 8
//   y[32g + 4p + k] = D * G[row][k] * sign(the low half of signs[4g + p/2] for even p, else the high one)
//   g < 8, p < 8, k < 4
template <>
struct Ahead<BlockIQ3_S> : CodebookFormat<Iq3s, 32, 4> {
  simd::BookRows<kIq3sBook, 64> rows;
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ3_S* b) const { return b->signs; }
  GGUF_INLINE void read(const BlockIQ3_S* b) {
    for (int i = 0; i < 64; i += 16) {
      simd::join_rows<1, 1, 16>(rows.number + i, b->rows + i, b->rows_high + i / 8);
    }
    rows.find();
    const auto scales = simd::int8x16(spread_nibbles(word32(b->scales)), 0);
    d.set(simd::mul(simd::add(simd::mul(scales, 2), 1), simd::half(b->d)));
  }
};

// IQ1_S   0   2      34              50
//         | d | rows | qh            |        a group g: h = u16 at 2g of qh
//
//   D = d * (2 * ((h >> 12) & 7) + 1)        delta = bit 15 of h ? -1/8 : 1/8
//   row = rows[4g + l] | ((h >> 3l) & 7) << 8
//   y[32g + 8l + k] = D * (G[row][k] + delta)        g < 8, l < 4, k < 8
//
//   The levels Iq1 are 8 * (G + delta), so they are scaled by D / 8: a power of two changes no rounding.
template <>
struct Ahead<BlockIQ1_S> : CodebookFormat<Iq1, 32> {
  simd::BookRows<kIq1sBook, 32> rows;
  uint8_t negative[32];  // per row: all ones if its delta is negative
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ1_S*) const { return negative; }
  GGUF_INLINE void read(const BlockIQ1_S* b) {
    for (int i = 0; i < 32; i += 16) {
      simd::join_rows<3, 3, 4>(rows.number + i, b->rows + i, b->qh + i / 2);
    }
    rows.find();
    int16_t h[8];
    int32_t odd[16] = {};
    int32_t signs[8];
    std::memcpy(h, b->qh, sizeof h);
    for (int g = 0; g < 8; ++g) {
      odd[g] = (h[g] >> 11 & 14) + 1;
      signs[g] = h[g] < 0 ? -1 : 0;
    }
    std::memcpy(negative, signs, sizeof negative);
    d.set(simd::mul(simd::mul(simd::load_int32(odd), simd::half(b->d)), 0.125f));
  }
};

// IQ1_M   0      32   48       56
//         | rows | qh | scales |        scales: S = four u16
//
//   d = the binary16 whose nibbles, lowest first, are the top nibbles of S[0..3]
//   D = d * (2 * s + 1), s the three bits of S[g/2] from 6*(g%2) + 3*(l/2) on
//   h = nibble l of the two bytes from qh[2g] on
//   row = rows[4g + l] | (h & 7) << 8        delta = h & 8 ? -1/8 : 1/8
//   y[32g + 8l + k] = D * (G[row][k] + delta)        g < 8, l < 4, k < 8; levels as in IQ1_S
template <>
struct Ahead<BlockIQ1_M> : CodebookFormat<Iq1, 16> {
  simd::BookRows<kIq1sBook, 32> rows;
  uint8_t negative[32];  // per row: all ones if its delta is negative
  Scales d;

  GGUF_INLINE const uint8_t* signs_of(const BlockIQ1_M*) const { return negative; }
  GGUF_INLINE void read(const BlockIQ1_M* b) {
    uint16_t fields[32], odd[16];
    for (int i = 0; i < 32; i += 16) {
      simd::join_rows<4, 4, 4>(fields + i, b->rows + i, b->qh + i / 2);
    }
    for (int i = 0; i < 32; ++i) {
      rows.number[i] = fields[i] & 0x7ff;
      negative[i] = fields[i] & 0x800 ? 0xff : 0;
    }
    rows.find();
    constexpr uint8_t kNone[16] = {};
    simd::join_rows<3, 3, 4>(odd, kNone, b->scales);  // the three bits, times 256
    for (uint16_t& s : odd) s = static_cast<uint16_t>((s >> 7) + 1);

    uint8_t d_bits[2] = {0, 0};
    for (int i = 0; i < 4; ++i)
      d_bits[i / 2] |= static_cast<uint8_t>(b->scales[2 * i + 1] >> 4 << 4 * (i % 2));
    d.set(simd::mul(simd::mul(simd::load_int16(odd), simd::half(d_bits)), 0.125f));
  }
};

}  // namespace
}  // namespace gguf
