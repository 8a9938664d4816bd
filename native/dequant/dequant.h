// The entry point of dequantization: from block bytes to numbers, with the best instruction set of this
// machine.
#pragma once

#include <cstdint>
#include <vector>

#include "dequant/formats.h"
#include "dequant/out.h"

namespace gguf {

/**
 * Dequantizes `n_blocks` blocks at `src` to `n_blocks * format.block_elements` elements at `dst`. `src` needs
 * no alignment, `dst` that of its element type. Reads and writes no byte outside of them. `big_endian`: the
 * fields inside the blocks are big-endian. Thread-safe, never fails.
 */
void dequantize(const Format& format, Out out, Store store, bool big_endian, const uint8_t* src,
                uint64_t n_blocks, void* dst) noexcept;

/** The instruction sets whose kernels this machine can run, best first; "scalar" is always the last. */
const std::vector<const char*>& available_isas();
/** The one in use: the best, or the one that the environment variable GGUF_NATIVE_ISA names if it is
 * available. */
const char* active_isa();
/** The set that it is in everything but products of integers: itself, or one of another name. */
const char* active_base_isa();
/** Changes the instruction set in use, for tests. Returns false and changes nothing if `name` is not
 * available. */
bool use_isa(const char* name);

}  // namespace gguf
