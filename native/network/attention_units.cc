#include "network/attention_units.h"

#include <algorithm>

#include "core/checked.h"
#include "network/kernels.h"

namespace gguf {

namespace {

/** Scores that a unit keeps: what stays in the second-level cache. */
constexpr uint64_t kScores = uint64_t{1} << 16;
constexpr uint64_t kMostTokens = 32;
constexpr uint64_t kLine = 64;

}  // namespace

uint64_t Attention::tokens_at_once(const KvCache& cache) const {
  const uint64_t group = heads / cache.shape().heads;
  return std::clamp<uint64_t>(kScores / (group * (cache.length() + 1)), 1, kMostTokens);
}

uint64_t Attention::n_units(const KvCache& cache) const {
  const uint64_t at_once = tokens_at_once(cache);
  return cache.shape().heads * ((n_tokens + at_once - 1) / at_once);
}

uint64_t Attention::n_multiplications(const KvCache& cache) const {
  const CacheShape& shape = cache.shape();
  uint64_t n;
  if (!multiply_below(UINT64_MAX, n_tokens * heads, cache.length(), n) ||
      !multiply_below(UINT64_MAX, n, shape.key_width + shape.value_width, n)) {
    return UINT64_MAX;
  }
  return n;
}

uint64_t Attention::scratch_bytes(const KvCache& cache) const {
  const uint64_t count = tokens_at_once(cache) * (heads / cache.shape().heads);
  const uint64_t scores = count * (cache.length() / 16 + 2) * 16;
  return (scores + attention_sum_floats(cache)) * sizeof(float) + count * sizeof(Query) + kLine;
}

void Attention::do_unit(const KvCache& cache, uint64_t unit, uint8_t* scratch) const noexcept {
  const CacheShape& shape = cache.shape();
  const uint64_t at_once = tokens_at_once(cache), group = heads / shape.heads;
  const uint64_t head = unit % shape.heads, first_token = unit / shape.heads * at_once;
  const uint64_t n = std::min(at_once, n_tokens - first_token);
  scratch += (kLine - reinterpret_cast<uintptr_t>(scratch) % kLine) % kLine;
  auto* const numbers = reinterpret_cast<float*>(scratch);
  auto* const list = reinterpret_cast<Query*>(scratch + scratch_bytes(cache) - kLine) - n * group;
  uint64_t count = 0;
  for (uint64_t i = first_token; i < first_token + n; ++i) {
    const uint64_t position = cache.length() - n_tokens + i;
    const uint64_t first = window == 0 || position < window ? 0 : position - window + 1;
    const uint64_t last = causal ? position : cache.length() - 1;
    for (uint64_t h = head * group; h < (head + 1) * group; ++h) {
      new (list + count++)
          Query{queries + (i * heads + h) * shape.key_width, out + (i * heads + h) * shape.value_width, first,
                last, sinks == nullptr ? nullptr : sinks + h};
    }
  }
  network_kernels().attend(cache, head, {list, count, scale, cap, numbers});
}

}  // namespace gguf
