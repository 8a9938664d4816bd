// The common part of all instruction sets. Each file of isa/ includes this once, inside its target region. It
// compiles every encoder for that set and defines their table, `kThisIsa`.
//
// Everything here and in encoders/ is in an unnamed namespace. Otherwise the linker would merge functions
// with the same name, and one set would run the instructions of another.
#pragma once

#include "quant/encoders.h"
#include "quant/encoders/iq1.h"
#include "quant/encoders/iq2.h"
#include "quant/encoders/iq3.h"
#include "quant/encoders/k_affine.h"
#include "quant/encoders/k_symmetric.h"
#include "quant/encoders/levels.h"
#include "quant/encoders/numbers.h"
#include "quant/encoders/simple.h"
#include "quant/encoders/ternary.h"

namespace gguf {
namespace {

template <class Block, Search kWidest>
void encode_blocks(const float* x, const float* importance, uint64_t n_blocks, uint8_t* dst, Search search) {
  if constexpr (kWidest == Search::kBest) {
    encode(x, importance, n_blocks, reinterpret_cast<Block*>(dst), search);
  } else {
    encode(x, importance, n_blocks, reinterpret_cast<Block*>(dst));
  }
}

constexpr EncoderTable encoders_of_this_isa() {
  EncoderTable table{simd::kName, {}};
#define ENCODER(name, importance, widest, chunk) \
  table.of[k##name] = encode_blocks<Block##name, Search::widest>;
#include "quant/encoders.def"
#undef ENCODER
  return table;
}

constexpr EncoderTable kThisIsa = encoders_of_this_isa();
#undef GGUF_THIS_ISA
#define GGUF_THIS_ISA &kThisIsa

}  // namespace
}  // namespace gguf
