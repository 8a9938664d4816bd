// F32, F16 and BF16: blocks of one number, which may be anything.
#pragma once

#include "dequant/blocks.h"
#include "dequant/half.h"
#include "quant/lanes.h"

namespace gguf {
namespace {

template <Out kOut>
GGUF_INLINE void convert_some(const float* x, uint64_t n, uint16_t* y) {
  for (uint64_t i = 0; i < n; ++i) {
    y[i] = kOut == Out::kFloat16 ? float_to_half(x[i]) : float_to_bfloat16(x[i]);
  }
}

/** Whether some of simd::kConverted numbers are NaNs. */
GGUF_INLINE bool has_nan(const float* x) {
  lanes::Mask found = lanes::splat(0);
  for (int i = 0; i < simd::kConverted; i += lanes::kLanes) {
    const lanes::Float some = lanes::load(x + i);
    found = found | (some != some);
  }
  return lanes::any(found);
}

/** With the conversions of the kernels. But a binary16 NaN has no payload, which they may keep. */
template <Out kOut, class Block>
GGUF_INLINE void convert_each(const float* x, uint64_t n, Block* y) {
  constexpr uint64_t kCount = simd::kConverted;
  alignas(64) uint16_t converted[kCount];
  for (; n > 0; n -= std::min(n, kCount), x += kCount, y += kCount) {
    const uint64_t count = std::min(n, kCount);
    if (count < kCount || (kOut == Out::kFloat16 && has_nan(x))) {
      convert_some<kOut>(x, count, converted);
    } else {
      simd::convert<kOut, Store::kPlain>(converted, x);
    }
    std::memcpy(y, converted, static_cast<size_t>(count) * sizeof *y);
  }
}

void encode(const float* x, const float*, uint64_t n, BlockF32* y) {
  if (n > 0) std::memcpy(y, x, static_cast<size_t>(n) * sizeof *x);
}
void encode(const float* x, const float*, uint64_t n, BlockF16* y) {
  convert_each<Out::kFloat16>(x, n, y);
}
void encode(const float* x, const float*, uint64_t n, BlockBF16* y) {
  convert_each<Out::kBFloat16>(x, n, y);
}

}  // namespace
}  // namespace gguf
