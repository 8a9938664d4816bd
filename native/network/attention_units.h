// Attention cut into units of work, which threads share out.
#pragma once

#include <cstdint>

#include "network/kv_cache.h"

namespace gguf {

/** Attention as products: which queries see what of a cache. Heads of queries are a multiple of the cache's.
 */
struct Attention {
  const float* queries = nullptr;  // of n_tokens tokens, the last ones of the cache
  uint64_t n_tokens = 0, heads = 0;
  float scale = 1;
  float cap = 0;                 // 0: none
  bool causal = true;            // a token sees none after it
  uint64_t window = 0;           // positions that a token sees up to its own; 0: all
  const float* sinks = nullptr;  // one for each head, or nullptr
  float* out = nullptr;

  /** Work is cut into units: some tokens, and all heads of queries that share a head of the cache. */
  uint64_t tokens_at_once(const KvCache& cache) const;
  uint64_t n_units(const KvCache& cache) const;
  /** Numbers that are multiplied, about. */
  uint64_t n_multiplications(const KvCache& cache) const;
  /** Memory that a unit needs at most. */
  uint64_t scratch_bytes(const KvCache& cache) const;
  /** Threads do units at the same time, each with scratch of its own: nothing is allocated. */
  void do_unit(const KvCache& cache, uint64_t unit, uint8_t* scratch) const noexcept;
};

}  // namespace gguf
