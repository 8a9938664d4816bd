// The functions of one instruction set: one per format and kind of store, and one per 16-bit output.
#pragma once

#include <cstdint>

#include "dequant/dequant.h"

namespace gguf {

/** Dequantizes n_blocks blocks to binary32. With Store::kStreaming, dst is aligned to kStreamingAlignment. */
using Kernel = void (*)(const uint8_t* src, uint64_t n_blocks, float* dst);
/** Converts n numbers to one of the 16-bit outputs; the same rule. */
using Converter = void (*)(const float* src, uint64_t n, uint16_t* dst);

struct KernelTable {
  const char* isa;
  Kernel kernels[kFormatCount][2];  // [FormatIndex][Store]
  Converter to_float16[2];          // [Store]
  Converter to_bfloat16[2];
  void (*store_fence)();  // ends a series of streaming stores
};

// One per source file of isa/; nullptr if the compiler's target has no such instructions.
extern const KernelTable* const kScalarKernels;
extern const KernelTable* const kAvx2Kernels;
extern const KernelTable* const kAvx512Kernels;
extern const KernelTable* const kNeonKernels;

}  // namespace gguf
