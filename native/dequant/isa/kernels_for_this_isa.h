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

/** Where a kernel's numbers go: converted to one output type, stored in one way. */
template <Out kOut, Store kStore>
struct Sink {
  using Element = std::conditional_t<kOut == Out::kFloat32, float, uint16_t>;

  Element* y;

  /** Writes 32 consecutive numbers, the first of them at index `at`. */
  GGUF_INLINE void put(int at, const simd::Floats16& a, const simd::Floats16& b) {
    simd::store<kOut, kStore>(y + at, a, b);
  }
};

template <class Block, Out kOut, Store kStore>
void dequantize_blocks(const uint8_t* src, uint64_t n_blocks, void* dst) {
  using S = Sink<kOut, kStore>;
  using Element = typename S::Element;
  constexpr int kBlocks = kGroup<Block>;
  constexpr int kElements = kBlocks * Block::kElements;

  const Block* b = reinterpret_cast<const Block*>(src);
  Element* y = static_cast<Element*>(dst);
  Ahead<Block> ahead[2];
  int turn = 0;
  if (n_blocks >= kBlocks) ahead[turn].read(b);
  for (; n_blocks >= kBlocks; n_blocks -= kBlocks) {
    if (n_blocks >= 2 * kBlocks) ahead[turn ^ 1].read(b + kBlocks);
    S sink{y};
    dequantize(b, ahead[turn], sink);
    turn ^= 1;
    b += kBlocks;
    y += kElements;
  }
  // Fewer blocks than a group: the group is completed with zeros, aside, so that no kernel has a tail of its
  // own.
  if (n_blocks > 0) {
    Block blocks[kBlocks] = {};
    std::memcpy(blocks, b, n_blocks * sizeof(Block));
    ahead[0].read(blocks);
    alignas(64) Element elements[kElements];
    Sink<kOut, Store::kPlain> sink{elements};
    dequantize(blocks, ahead[0], sink);
    std::memcpy(y, elements, n_blocks * Block::kElements * sizeof(Element));
  }
  if constexpr (kStore == Store::kStreaming) simd::store_fence();
}

/** What streams where the set can, and is the plain kernel where it cannot. */
template <class Block, Out kOut>
constexpr Kernel kStreamingKernel = dequantize_blocks < Block,
                 kOut, simd::kStreams ? Store::kStreaming : Store::kPlain > ;

#define GGUF_KERNELS_OF(Block)                                                                              \
  {                                                                                                         \
    {dequantize_blocks<Block, Out::kFloat32, Store::kPlain>, kStreamingKernel<Block, Out::kFloat32>},       \
        {dequantize_blocks<Block, Out::kFloat16, Store::kPlain>, kStreamingKernel<Block, Out::kFloat16>}, { \
      dequantize_blocks<Block, Out::kBFloat16, Store::kPlain>, kStreamingKernel<Block, Out::kBFloat16>      \
    }                                                                                                       \
  }

constexpr KernelTable kThisIsa = {simd::kName,
                                  {
#define FORMAT(name, id, fields) GGUF_KERNELS_OF(Block##name),
#include "dequant/formats.def"
#undef FORMAT
                                  }};

}  // namespace
}  // namespace gguf
