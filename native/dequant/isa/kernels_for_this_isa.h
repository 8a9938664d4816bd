// The generic half of every instruction set: included once by each file of isa/, inside its target region and
// after its simd/ header, it compiles every kernel for that set and defines `kernel_table()`.
//
// Everything here and in kernels/ is in an unnamed namespace: a function that two sets had under one name
// would be merged by the linker, and one of them would run the other's instructions.

#include "dequant/kernels/codebooks.h"
#include "dequant/kernels/k_quants.h"
#include "dequant/kernels/numbers.h"
#include "dequant/kernels/simple.h"
#include "dequant/kernels/ternary.h"

namespace gguf {
namespace {

/** Where a kernel's numbers go: stored in one way. */
template <Store kStore>
struct Sink {
  float* y;

  /** Writes 32 consecutive numbers, the first of them at index `at`. */
  GGUF_INLINE void put(int at, const simd::Floats16& a, const simd::Floats16& b) {
    simd::store<Out::kFloat32, kStore>(y + at, a, b);
  }
};

template <class Block, Store kStore>
void dequantize_blocks(const uint8_t* src, uint64_t n_blocks, float* y) {
  constexpr int kBlocks = kGroup<Block>;
  constexpr int kElements = kBlocks * Block::kElements;

  const Block* b = reinterpret_cast<const Block*>(src);
  Ahead<Block> ahead[2];
  int turn = 0;
  if (n_blocks >= kBlocks) ahead[turn].read(b);
  for (; n_blocks >= kBlocks; n_blocks -= kBlocks) {
    if (n_blocks >= 2 * kBlocks) ahead[turn ^ 1].read(b + kBlocks);
    Sink<kStore> sink{y};
    dequantize(b, ahead[turn], sink);
    turn ^= 1;
    b += kBlocks;
    y += kElements;
  }
  // Fewer blocks than a group: it is completed with zeros, aside, so that no kernel has a tail of its own.
  if (n_blocks > 0) {
    Block blocks[kBlocks] = {};
    alignas(64) float elements[kElements];
    std::memcpy(blocks, b, static_cast<size_t>(n_blocks) * sizeof(Block));
    dequantize_blocks<Block, Store::kPlain>(reinterpret_cast<const uint8_t*>(blocks), kBlocks, elements);
    std::memcpy(y, elements, static_cast<size_t>(n_blocks) * Block::kElements * sizeof(float));
  }
}

/**
 * The 16-bit outputs have no kernels of their own: numbers are made in the first-level cache and converted
 * there.
 */
template <Out kOut, Store kStore>
void convert_numbers(const float* x, uint64_t n, uint16_t* y) {
  for (; n >= 32; n -= 32, x += 32, y += 32) {
    simd::store<kOut, kStore>(y, simd::load_f32(x), simd::load_f32(x + 16));
  }
  if (n > 0) {
    alignas(64) float last[32] = {};
    alignas(64) uint16_t converted[32];
    std::memcpy(last, x, static_cast<size_t>(n) * sizeof *x);
    simd::store<kOut, Store::kPlain>(converted, simd::load_f32(last), simd::load_f32(last + 16));
    std::memcpy(y, converted, static_cast<size_t>(n) * sizeof *y);
  }
}

void end_stores() {
  simd::store_fence();
}

/** Streaming stores where the set has them. */
constexpr Store kStreaming = simd::kStreams ? Store::kStreaming : Store::kPlain;

constexpr KernelTable kThisIsa = {
    simd::kName,
    {
#define FORMAT(name, id, fields) \
  {dequantize_blocks<Block##name, Store::kPlain>, dequantize_blocks<Block##name, kStreaming>},
#include "dequant/formats.def"
#undef FORMAT
    },
    {convert_numbers<Out::kFloat16, Store::kPlain>, convert_numbers<Out::kFloat16, kStreaming>},
    {convert_numbers<Out::kBFloat16, Store::kPlain>, convert_numbers<Out::kBFloat16, kStreaming>},
    end_stores,
};

}  // namespace
}  // namespace gguf
