// What one instruction set offers: a function per format, output and way of storing.
#pragma once

#include <cstdint>

#include "dequant/dequant.h"

namespace gguf {

/** Dequantizes n_blocks blocks. With Store::kStreaming, dst is aligned to kStreamingAlignment. */
using Kernel = void (*)(const uint8_t* src, uint64_t n_blocks, void* dst);

enum FormatIndex : uint8_t {
#define FORMAT(name, id, fields) k##name,
#include "dequant/formats.def"
#undef FORMAT
  kFormatCount,
};

struct KernelTable {
  const char* isa;
  Kernel kernels[kFormatCount][3][2];  // [FormatIndex][Out][Store]
};

// One per source file of isa/; nullptr where the compiler's target has no such instructions.
extern const KernelTable* const kScalarKernels;
extern const KernelTable* const kAvx2Kernels;
extern const KernelTable* const kAvx512Kernels;
extern const KernelTable* const kNeonKernels;

}  // namespace gguf
