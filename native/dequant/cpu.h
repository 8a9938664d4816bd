// Which instruction sets this machine and its operating system support.
#pragma once

namespace gguf {

/** AVX2, F16C and FMA, with the operating system saving ymm registers. */
bool cpu_has_avx2();
/** The same, and AVX-VNNI. */
bool cpu_has_avx2_vnni();
/** AVX2, and of AVX-512 F, VL and VNNI, but not AVX-VNNI, with the operating system saving mask registers. */
bool cpu_has_avx2_evex_vnni_only();
/** AVX2, and AVX-512 F, BW, DQ, VL, VBMI and VNNI, with the operating system saving zmm and mask registers.
 */
bool cpu_has_avx512();
/** The same, and tiles with products of bytes (AMX-TILE, AMX-INT8), with the operating system saving tiles.
 */
bool cpu_has_amx();
/** Asks Linux whether the threads of this process may use tiles, which they must not before. */
bool allow_amx();
/** The dot products of bytes that ARM processors have since about 2018: FEAT_DotProd. */
bool cpu_has_neon_dotprod();
/** The same, and the products of matrices of bytes that they have since about 2021: FEAT_I8MM. */
bool cpu_has_neon_i8mm();

}  // namespace gguf
