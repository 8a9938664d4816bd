// NEON with the instruction that adds four products of bytes: what neon_bytes.h is compiled with a second
// time. GGUF_NEON_DOTPROD is defined if the compiler has it: GCC, and Clang since version 16. cl.exe was not
// tried.
#pragma once

#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_DOTPROD))
#include "dequant/simd/neon.h"
#include "dequant/simd/target.h"

#define GGUF_NEON_DOTPROD
// Every processor that has it has the rest of this version of the architecture.
#define GGUF_ISA_FEATURES "arch=armv8.2-a+dotprod"
#endif
