// How dequantized numbers are written: their type, and their way to memory.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace gguf
