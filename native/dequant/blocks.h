// The blocks of the ggml formats, with the same bytes as in a file. A diagram above each kernel (kernels/)
// shows the meaning of the fields; sizes are computed only here.
//
// Every field is made of bytes, so a block has no alignment and may start anywhere. Multi-byte fields are
// little-endian by the time a kernel sees them (block_fields.h), and so is the system.
#pragma once

#include <cstdint>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "gguf-native is for little-endian systems: on this one it would give wrong numbers"
#endif

namespace gguf {

template <int Elements>
struct BlockOf {
  static constexpr int kElements = Elements;
};

// ---- numbers, one to a block (kernels/numbers.h)
template <int Bytes>
struct NumberBlock : BlockOf<1> {
  uint8_t value[Bytes];
};
struct BlockF32 : NumberBlock<4> {};
struct BlockF16 : NumberBlock<2> {};
struct BlockBF16 : NumberBlock<2> {};
struct BlockI8 : NumberBlock<1> {};
struct BlockI16 : NumberBlock<2> {};
struct BlockI32 : NumberBlock<4> {};
struct BlockI64 : NumberBlock<8> {};
struct BlockF64 : NumberBlock<8> {};

// ---- simple blocks (kernels/simple.h)
struct BlockQ4_0 : BlockOf<32> {
  uint8_t d[2], q[16];
};
struct BlockQ4_1 : BlockOf<32> {
  uint8_t d[2], m[2], q[16];
};
struct BlockQ5_0 : BlockOf<32> {
  uint8_t d[2], qh[4], q[16];
};
struct BlockQ5_1 : BlockOf<32> {
  uint8_t d[2], m[2], qh[4], q[16];
};
struct BlockQ8_0 : BlockOf<32> {
  uint8_t d[2], q[32];
};

struct BlockQ8_1 : BlockOf<32> {
  uint8_t d[2], sum[2], q[32];
};
struct BlockQ1_0 : BlockOf<128> {
  uint8_t d[2], q[16];
};
struct BlockQ2_0 : BlockOf<64> {
  uint8_t d[2], q[16];
};
struct BlockMXFP4 : BlockOf<32> {
  uint8_t e, q[16];
};
struct BlockNVFP4 : BlockOf<64> {
  uint8_t scales[4], q[32];
};
struct BlockIQ4_NL : BlockOf<32> {
  uint8_t d[2], q[16];
};

// ---- k-quants (kernels/k_quants.h)
struct BlockQ2_K : BlockOf<256> {
  uint8_t scales[16], q[64], d[2], dmin[2];
};
struct BlockQ3_K : BlockOf<256> {
  uint8_t hmask[32], q[64], scales[12], d[2];
};
struct BlockQ4_K : BlockOf<256> {
  uint8_t d[2], dmin[2], scales[12], q[128];
};
struct BlockQ5_K : BlockOf<256> {
  uint8_t d[2], dmin[2], scales[12], qh[32], q[128];
};
struct BlockQ6_K : BlockOf<256> {
  uint8_t ql[128], qh[64], scales[16], d[2];
};
struct BlockQ8_K : BlockOf<256> {
  uint8_t d[4], q[256], sums[32];
};

struct BlockIQ4_XS : BlockOf<256> {
  uint8_t d[2], scales_high[2], scales_low[4], q[128];
};

// ---- ternary (kernels/ternary.h)
struct BlockTQ1_0 : BlockOf<256> {
  uint8_t q[48], qh[4], d[2];
};
struct BlockTQ2_0 : BlockOf<256> {
  uint8_t q[64], d[2];
};

// ---- of PrismML's fork of llama.cpp (kernel_blocks.cc)
struct BlockPQ2_0 : BlockOf<128> {
  uint8_t d[2], q[32];
};
struct BlockPTQ1_0 : BlockOf<128> {
  uint8_t q[24], qh[2], d[2];
};

// ---- codebooks (kernels/codebooks.h)
struct BlockIQ2_XXS : BlockOf<256> {
  uint8_t d[2], groups[64];
};
struct BlockIQ2_XS : BlockOf<256> {
  uint8_t d[2], rows[64], scales[8];
};
struct BlockIQ2_S : BlockOf<256> {
  uint8_t d[2], rows[32], signs[32], rows_high[8], scales[8];
};
struct BlockIQ3_XXS : BlockOf<256> {
  uint8_t d[2], rows[64], signs_and_scales[32];
};
struct BlockIQ3_S : BlockOf<256> {
  uint8_t d[2], rows[64], rows_high[8], signs[32], scales[4];
};
struct BlockIQ1_S : BlockOf<256> {
  uint8_t d[2], rows[32], qh[16];
};
struct BlockIQ1_M : BlockOf<256> {
  uint8_t rows[32], qh[16], scales[8];
};

}  // namespace gguf
