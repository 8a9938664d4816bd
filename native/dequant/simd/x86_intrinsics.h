// All x86 intrinsics: those of later instruction sets are used inside target regions.
#pragma once

#include <immintrin.h>

// With clang-cl up to Clang 19, <immintrin.h> omits the sets that the whole file is not compiled for.
#if defined(__clang__) && (defined(_MSC_VER) || defined(__SCE__))
// Each header needs those before it.
// clang-format off
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#include <avx512fintrin.h>
#include <avx512vlintrin.h>
#include <avx512bwintrin.h>
#include <avx512vlbwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vldqintrin.h>
#include <avx512vbmiintrin.h>
#include <avx512vbmivlintrin.h>
#include <avx512vnniintrin.h>
#include <avx512vlvnniintrin.h>
#if __clang_major__ >= 12
#include <avxvnniintrin.h>
#endif
// clang-format on
#endif
