// Which instruction sets this machine and its operating system support.
#pragma once

namespace gguf {

/** AVX2, F16C and FMA, with the operating system saving ymm registers. */
bool cpu_has_avx2();
/** The same, and AVX-512 F, BW, DQ, VL and VBMI, with the operating system saving zmm and mask registers. */
bool cpu_has_avx512();

}  // namespace gguf
