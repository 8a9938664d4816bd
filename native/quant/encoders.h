// The encoders of every instruction set: tables of functions from numbers to blocks.
#pragma once

// What encoders use of the system is included here, outside of target regions.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "dequant/codebooks.h"
#include "dequant/formats.h"
#include "quant/neighbours.h"

namespace gguf {

/** How an encoder searches for scales. */
enum class Search : uint8_t {
  kGgml,  // as ggml does: the same bytes
  kBest,  // wider, where there is such a search: as kGgml elsewhere
};

/**
 * Turns numbers into `n_blocks` blocks at `dst`, which needs no alignment and does not overlap them.
 * `importance` has a weight for each number (x and importance advance together), or is nullptr. All numbers
 * are finite, and weights are finite and not negative. The blocks are of one row; of Importance::kRow they
 * are the whole row if there is importance.
 */
using EncodeBlocks = void (*)(const float* x, const float* importance, uint64_t n_blocks, uint8_t* dst,
                              Search search);

/** What an encoder does with the importance of columns. */
enum class Importance : uint8_t {
  kUnused,    // nothing
  kOptional,  // each block depends on its own numbers and weights
  kRow,       // with importance, each block depends on all numbers of its row
  kRequired,  // like kOptional, and ggml refuses to encode without
};

/** What is the same on every instruction set. */
struct EncoderFacts {
  bool exists = false;
  Importance importance = Importance::kUnused;
  Search widest = Search::kGgml;
  uint32_t chunk = 0;  // numbers that take about a tenth of a millisecond: how finely work is divided
};

struct EncoderTable {
  const char* isa;
  EncodeBlocks of[kFormatCount];  // [FormatIndex]; nullptr without encoder
};

/** What a file of isa/ has at its end: its table where encoders_for_this_isa.h defines it. */
#define GGUF_THIS_ISA nullptr

// One per source file of isa/; nullptr if the compiler's target has no such instructions.
extern const EncoderTable* const kScalarEncoders;
extern const EncoderTable* const kAvx2Encoders;
extern const EncoderTable* const kAvx512Encoders;
extern const EncoderTable* const kNeonEncoders;
extern const EncoderTable* const kWasmEncoders;

}  // namespace gguf
