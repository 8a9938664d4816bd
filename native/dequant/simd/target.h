// Target regions: functions between GGUF_TARGET_BEGIN("avx2,...") and GGUF_TARGET_END may use these
// instructions, with any flags for the file. System headers stay outside. cl.exe needs no region: it accepts
// every intrinsic everywhere.
#pragma once

#define GGUF_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define GGUF_TARGET_BEGIN(features) \
  GGUF_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define GGUF_TARGET_END _Pragma("clang attribute pop")
#elif defined(__GNUC__)
#define GGUF_TARGET_BEGIN(features) _Pragma("GCC push_options") GGUF_PRAGMA(GCC target(features))
#define GGUF_TARGET_END _Pragma("GCC pop_options")
#else
#define GGUF_TARGET_BEGIN(features)
#define GGUF_TARGET_END
#endif
