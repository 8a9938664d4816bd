// NEON with the instruction that multiplies small matrices of bytes: what the tiles of neon_bytes.h are
// compiled with a third time. GGUF_NEON_I8MM is defined if the compiler has it: GCC since version 10, Clang
// since 16.
#pragma once

#if defined(__aarch64__) && (defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 10)
#include "dequant/simd/neon.h"
#include "dequant/simd/target.h"

#define GGUF_NEON_I8MM
#define GGUF_ISA_FEATURES "arch=armv8.2-a+dotprod+i8mm"
#endif
