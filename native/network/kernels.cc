#include "network/kernels.h"

#include "dequant/dequant.h"
#include "dequant/isa/kernel_table.h"

namespace gguf {

const NetworkKernels& network_kernels() {
  const NetworkKernels* const tables[] = {kAvx512Network, kAvx2Network, kNeonNetwork, kWasmNetwork};
  for (const NetworkKernels* const table : tables) {
    if (table != nullptr && std::strcmp(table->isa, active_base_isa()) == 0) return *table;
  }
  return kScalarNetwork != nullptr ? *kScalarNetwork : *kWasmNetwork;
}

void rounding_error(const float* x, uint64_t n, float* out) {
  constexpr uint64_t kRun = RoundedRun::kColumns, kAtOnce = 16;
  RoundedRun rounded[kAtOnce];
  for (uint64_t i = 0; i < n; i += kAtOnce * kRun) {
    const uint64_t n_runs = std::min(kAtOnce, (n - i) / kRun);
    active_kernels().round_runs(x, n_runs, rounded);
    for (uint64_t r = 0; r < n_runs; ++r, x += kRun, out += kRun) {
      for (uint64_t j = 0; j < kRun; ++j) {
        out[j] = x[j] - static_cast<float>(rounded[r].codes[j]) * rounded[r].scale;
      }
    }
  }
}

void mean_of_rows(const float* x, uint64_t n, uint64_t width, float* out) {
  const NetworkKernels& kernels = network_kernels();
  std::fill_n(out, width, 0.0f);
  for (uint64_t i = 0; i < n; ++i) kernels.add(out, x + i * width, width);
  const auto count = static_cast<float>(n);
  for (uint64_t i = 0; i < width; ++i) out[i] /= count;
}

}  // namespace gguf
