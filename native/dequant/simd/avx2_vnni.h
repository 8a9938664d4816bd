// AVX2 with the instruction that adds four products of bytes, AVX-VNNI: what avx2_bytes.h is compiled with a
// second time. Processors without AVX-512 have it since Alder Lake. GGUF_AVX_VNNI is defined if the compiler
// has it: GCC since 11, Clang since 12. cl.exe was not tried.
#pragma once

#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#include "dequant/simd/avx2.h"

#define GGUF_AVX_VNNI
#undef GGUF_ISA_FEATURES
#define GGUF_ISA_FEATURES "avx2,f16c,fma,avxvnni"
#endif
