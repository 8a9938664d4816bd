// AVX2 with the instruction that adds four products of bytes: what avx2_bytes.h is compiled with two times
// more. Processors without AVX-512 have it since Alder Lake (AVX-VNNI). Servers of 2019 and 2020 (Cascade
// Lake, Cooper Lake) have it in the encoding of AVX-512 (with GGUF_EVEX_VNNI), but lack other instructions
// that avx512.h wants. GGUF_VNNI is defined if the compiler has it: GCC since 11, Clang since 12. cl.exe was
// not tried.
#pragma once

#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#include "dequant/simd/avx2.h"

#define GGUF_VNNI
#undef GGUF_ISA_FEATURES
#if defined(GGUF_EVEX_VNNI)
#define GGUF_ISA_FEATURES "avx2,f16c,fma,avx512vl,avx512vnni"
#define GGUF_DPBUSD _mm256_dpbusd_epi32
#else
#define GGUF_ISA_FEATURES "avx2,f16c,fma,avxvnni"
#define GGUF_DPBUSD _mm256_dpbusd_avx_epi32
#endif
#endif
