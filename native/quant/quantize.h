// From numbers to block bytes: the formats for which ggml has a reference rounding without weights of
// importance.
#pragma once

#include <cstdint>

#include "dequant/formats.h"

namespace gguf {

/** Whether numbers can be turned into blocks of this format. */
bool can_quantize(const Format& format);

/**
 * Turns `n_blocks * format.block_elements` numbers at `src` into blocks at `dst`, which needs no alignment
 * and must not overlap them. The bytes equal those of ggml's reference, quantize_row_*_ref, on every machine,
 * with NaN and infinite numbers too. Only for a format that can_quantize. Thread-safe, never fails.
 */
void quantize(const Format& format, const float* src, uint64_t n_blocks, uint8_t* dst) noexcept;

}  // namespace gguf
