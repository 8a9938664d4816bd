#include "dequant/dequant.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "dequant/cpu.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/kernel_blocks.h"

namespace gguf {
namespace {

/** A row of the table of instruction sets: best first. */
struct Target {
  const KernelTable* kernels;
  bool (*runs_here)();
};

constexpr bool always() {
  return true;
}

std::vector<const KernelTable*> find_targets() {
  const Target targets[] = {
      {kAvx512AmxKernels, cpu_has_amx},
      {kAvx512Kernels, cpu_has_avx512},
      {kAvx2VnniKernels, cpu_has_avx2_vnni},
      {kAvx2EvexVnniKernels, cpu_has_avx2_evex_vnni_only},
      {kAvx2Kernels, cpu_has_avx2},
      {kNeonI8mmKernels, cpu_has_neon_i8mm},
      {kNeonDotprodKernels, cpu_has_neon_dotprod},
      {kNeonKernels, always},  // part of every 64-bit ARM
      {kWasmRelaxedKernels, always},
      {kWasmKernels, always},  // if the module is compiled for it
      {kScalarKernels, always},
  };
  std::vector<const KernelTable*> found;
  for (const Target& target : targets) {
    if (target.kernels != nullptr && target.runs_here()) found.push_back(target.kernels);
  }
  return found;
}

/** Never destroyed, like the names below: tasks may still run while the process exits. */
const std::vector<const KernelTable*>& available() {
  static const auto* const targets = new std::vector<const KernelTable*>(find_targets());
  return *targets;
}

const KernelTable* find_target(const char* name) {
  for (const KernelTable* target : available()) {
    if (std::strcmp(target->isa, name) == 0) return target;
  }
  return nullptr;
}

const KernelTable* first_choice() {
  const char* const forced = std::getenv("GGUF_NATIVE_ISA");
  const KernelTable* target = forced == nullptr ? nullptr : find_target(forced);
  return target != nullptr ? target : available().front();
}

std::atomic<const KernelTable*>& active() {
  static std::atomic<const KernelTable*> target{first_choice()};
  return target;
}

}  // namespace

const KernelTable& active_kernels() {
  return *active().load(std::memory_order_relaxed);
}

const std::vector<const char*>& available_isas() {
  static const auto* const names = [] {
    auto* const list = new std::vector<const char*>;
    for (const KernelTable* target : available()) list->push_back(target->isa);
    return list;
  }();
  return *names;
}

const char* active_isa() {
  return active_kernels().isa;
}

const char* active_base_isa() {
  const KernelTable& kernels = active_kernels();
  return kernels.base == nullptr ? kernels.isa : kernels.base->isa;
}

bool use_isa(const char* name) {
  const KernelTable* target = find_target(name);
  if (target != nullptr) active().store(target, std::memory_order_relaxed);
  return target != nullptr;
}

void dequantize(const Format& format, Out out, Store store, bool big_endian, const uint8_t* src,
                uint64_t n_blocks, void* dst) noexcept {
  if (reinterpret_cast<uintptr_t>(dst) % kStreamingAlignment != 0) store = Store::kPlain;
  const auto way = static_cast<size_t>(store);
  const KernelTable& table = active_kernels();
  const bool rewrites = needs_rewriting(format, big_endian);
  if (out == Out::kFloat32 && !rewrites) {
    table.formats[format.index].store[way](src, n_blocks, static_cast<float*>(dst));
  } else {
    const Converter convert = out == Out::kFloat16 ? table.to_float16[way] : table.to_bfloat16[way];
    // A piece at a time, small enough to stay in the first-level cache.
    constexpr uint64_t kPieceElements = 2048;
    alignas(64) uint8_t rewritten[kPieceElements * sizeof(double)];
    alignas(64) float numbers[kPieceElements];
    auto* to = static_cast<uint8_t*>(dst);
    while (n_blocks > 0) {
      const uint64_t n = std::min(n_blocks, kPieceElements / format.block_elements);
      const uint64_t n_elements = n * format.block_elements;
      const uint8_t* const blocks = rewrites ? rewritten : src;
      const uint64_t n_read = rewrites ? rewrite_blocks(format, big_endian, src, n, rewritten) : n;
      if (out == Out::kFloat32) {
        table.formats[format.index].store[way](blocks, n_read, reinterpret_cast<float*>(to));
      } else {
        table.formats[format.index].store[static_cast<size_t>(Store::kPlain)](blocks, n_read, numbers);
        convert(numbers, n_elements, reinterpret_cast<uint16_t*>(to));
      }
      src += n * format.block_bytes;
      to += n_elements * out_bytes(out);
      n_blocks -= n;
    }
  }
  if (store == Store::kStreaming) table.store_fence();
}

}  // namespace gguf
