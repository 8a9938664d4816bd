#include "dequant/kernel_blocks.h"

#include <cstring>

#include "dequant/block_fields.h"
#include "dequant/blocks.h"

namespace gguf {
namespace {

// PQ2_0   0   2              34
//         | d | q            |
//
//   y[j] = (((q[j/4] >> 2*(j%4)) & 3) - 1) * d        j < 128
void rewrite(const BlockPQ2_0* b, BlockQ2_0* to) {
  std::memcpy(to[0].q, b->q, sizeof to[0].q);
  std::memcpy(to[1].q, b->q + sizeof to[0].q, sizeof to[1].q);
}

/** The five digits of every byte, each in a byte of its own. */
struct Digits {
  uint64_t of[256] = {};
  constexpr Digits() {
    for (unsigned v = 0; v < 256; ++v) {
      for (unsigned n = 0, rest = v; n < 5; ++n, rest = rest * 3 % 256) {
        of[v] |= uint64_t{rest * 3 / 256} << 8 * n;
      }
    }
  }
};
constexpr Digits kDigits;

/** The digits of 4 * kCodes bytes: a code has those of four bytes that follow each other. */
template <int kCodes>
void rewrite_digits(const uint8_t* q, uint8_t* codes) {
  for (int m = 0; m < kCodes; ++m, q += 4) {
    const uint64_t four =
        kDigits.of[q[0]] | kDigits.of[q[1]] << 2 | kDigits.of[q[2]] << 4 | kDigits.of[q[3]] << 6;
    for (int n = 0; n < 5; ++n) codes[kCodes * n + m] = static_cast<uint8_t>(four >> 8 * n);
  }
}

// PTQ1_0  0             24   26  28
//         | q           | qh | d |
//
//   Digits t(v, n) as in TQ1_0.
//   y[16n + m]       = (t(q[m], n) - 1) * d           n < 5, m < 16
//   y[80 + 8n + m]   = (t(q[16 + m], n) - 1) * d      n < 5, m < 8
//   y[120 + 2n + m]  = (t(qh[m], n) - 1) * d          n < 4, m < 2
void rewrite(const BlockPTQ1_0* b, BlockQ2_0* to) {
  uint8_t codes[BlockPTQ1_0::kElements / 4];
  rewrite_digits<4>(b->q, codes);
  rewrite_digits<2>(b->q + 16, codes + 20);
  // A code of qh has two digits of both bytes.
  const uint64_t two = kDigits.of[b->qh[0]] | kDigits.of[b->qh[1]] << 2;
  codes[30] = static_cast<uint8_t>(two | two >> 4);
  codes[31] = static_cast<uint8_t>(two >> 16 | two >> 20);
  std::memcpy(to[0].q, codes, sizeof to[0].q);
  std::memcpy(to[1].q, codes + sizeof to[0].q, sizeof to[1].q);
}

using Rewriter = uint64_t (*)(bool big_endian, const uint8_t* src, uint64_t n_blocks, uint8_t* dst);

/** Of a format without kernels: to blocks of another one, each of which gets the scale. */
template <class Block, class As>
uint64_t rewrite_all(bool big_endian, const uint8_t* src, uint64_t n_blocks, uint8_t* dst) {
  constexpr int kRatio = Block::kElements / As::kElements;
  const auto* b = reinterpret_cast<const Block*>(src);
  auto* to = reinterpret_cast<As*>(dst);
  for (uint64_t i = 0; i < n_blocks; ++i, ++b, to += kRatio) {
    rewrite(b, to);
    for (int k = 0; k < kRatio; ++k) {
      to[k].d[0] = b->d[big_endian ? 1 : 0];
      to[k].d[1] = b->d[big_endian ? 0 : 1];
    }
  }
  return n_blocks * kRatio;
}

struct Repacking {
  Rewriter rewrite;  // nullptr: there are kernels
  uint32_t block_bytes;
};
constexpr Repacking kRepackings[] = {
#define FORMAT(name, id, fields) {nullptr, sizeof(Block##name)},
#define REPACKED(name, id, fields, as) \
  {rewrite_all<Block##name, Block##as>, sizeof(Block##as) * (Block##name::kElements / Block##as::kElements)},
#include "dequant/formats.def"
#undef FORMAT
};

}  // namespace

bool needs_rewriting(const Format& format, bool big_endian) {
  return kRepackings[format.index].rewrite != nullptr || (big_endian && has_byte_order(format));
}

uint64_t rewrite_blocks(const Format& format, bool big_endian, const uint8_t* src, uint64_t n_blocks,
                        uint8_t* dst) {
  const Rewriter rewrite = kRepackings[format.index].rewrite;
  if (rewrite != nullptr) return rewrite(big_endian, src, n_blocks, dst);
  swap_blocks(fields_of(format), src, static_cast<size_t>(n_blocks), dst);
  return n_blocks;
}

uint64_t rewritten_bytes(const Format& format, uint64_t n_blocks) {
  return n_blocks * kRepackings[format.index].block_bytes;
}

}  // namespace gguf
