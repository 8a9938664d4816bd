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

void Attention::do_unit(const KvCache& cache, uint64_t unit, std::vector<uint8_t>& scratch) const {
  const CacheShape& shape = cache.shape();
  const uint64_t at_once = tokens_at_once(cache), group = heads / shape.heads;
  const uint64_t head = unit % shape.heads, first_token = unit / shape.heads * at_once;
  const uint64_t n = std::min(at_once, n_tokens - first_token);
  std::vector<Query> list;
  list.reserve(to_size(n * group));
  for (uint64_t i = first_token; i < first_token + n; ++i) {
    const uint64_t position = cache.length() - n_tokens + i;
    const uint64_t first = window == 0 || position < window ? 0 : position - window + 1;
    const uint64_t last = causal ? position : cache.length() - 1;
    for (uint64_t h = head * group; h < (head + 1) * group; ++h) {
      list.push_back({queries + (i * heads + h) * shape.key_width, out + (i * heads + h) * shape.value_width,
                      first, last, sinks == nullptr ? nullptr : sinks + h});
    }
  }
  Queries unit_queries{list.data(), list.size(), scale, cap, nullptr};
  const uint64_t n_floats = attention_scratch_floats(cache, unit_queries);
  const size_t n_bytes = to_size(n_floats * sizeof(float)) + kLine;
  if (scratch.size() < n_bytes) scratch.resize(n_bytes);
  const size_t misalignment = reinterpret_cast<uintptr_t>(scratch.data()) % kLine;
  unit_queries.scratch = reinterpret_cast<float*>(scratch.data() + (kLine - misalignment) % kLine);
  network_kernels().attend(cache, head, unit_queries);
}

}  // namespace gguf
