// The entry point of dequantization: from block bytes to numbers, with the best instruction set of this
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dequant/formats.h"

namespace gguf {

/** The type in which the numbers are written. */
enum class Out : uint8_t { kFloat32, kFloat16, kBFloat16 };

/** Bytes of one output element. */
constexpr size_t out_bytes(Out out) {
  return out == Out::kFloat32 ? 4 : 2;
}

/** How whole cache lines reach memory; see docs/performance.md. */
enum class Store : uint8_t {
  kPlain,      // through the cache
  kStreaming,  // bypasses the cache: for large outputs whose pages are present
};

/**
 * The alignment of outputs that streaming stores need, that of JavaScript's own memory; for other outputs,
 * stores are plain. Outputs that start with a cache line are written in whole lines, others in parts of 16
 * bytes, which the processor joins to lines.
 */
constexpr size_t kStreamingAlignment = 16;

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
/** Changes the instruction set in use, for tests. Returns false and changes nothing if `name` is not
 * available. */
bool use_isa(const char* name);

}  // namespace gguf
