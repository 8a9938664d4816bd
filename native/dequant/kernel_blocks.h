// Blocks as kernels read them: with numbers in the byte order of the system, and of a format that has
// kernels.
#pragma once

#include <cstdint>

#include "dequant/formats.h"

namespace gguf {

/** Whether there are no kernels for blocks as they are in a file. */
bool needs_rewriting(const Format& format, bool big_endian);
/** Writes such blocks as kernels read them, of the same numbers. Returns how many they are then. */
uint64_t rewrite_blocks(const Format& format, bool big_endian, const uint8_t* src, uint64_t n_blocks,
                        uint8_t* dst);
/** How many bytes that writes. */
uint64_t rewritten_bytes(const Format& format, uint64_t n_blocks);

}  // namespace gguf
