// What lies between the products of a network, over memory that the caller has allocated, and caches, which
// the caller frees.
#include <memory>

#include "network/attention_units.h"
#include "network/kernels.h"
#include "wasm/module.h"
#include "wasm/reply.h"

namespace gguf {

GGUF_EXPORT("net_rms_norm")
void module_rms_norm(const float* x, const float* weight, uint32_t width, uint32_t count, float epsilon,
                     float* out) {
  for (; count > 0; --count, x += width, out += width) {
    network_kernels().rms_norm(x, weight, width, epsilon, out);
  }
}

GGUF_EXPORT("net_layer_norm")
void module_layer_norm(const float* x, const float* weight, const float* bias, uint32_t width, uint32_t count,
                       float epsilon, float* out) {
  for (; count > 0; --count, x += width, out += width) {
    network_kernels().layer_norm(x, weight, bias, width, epsilon, out);
  }
}

GGUF_EXPORT("net_normalize")
void module_normalize(const float* x, uint32_t width, uint32_t count, float* out) {
  for (; count > 0; --count, x += width, out += width) network_kernels().normalize(x, width, out);
}

GGUF_EXPORT("net_rounding_error") void module_rounding_error(const float* x, uint32_t n, float* out) {
  rounding_error(x, n, out);
}

GGUF_EXPORT("net_activate")
void module_activate(const float* x, const float* up, uint32_t activation, uint32_t n, float* out) {
  network_kernels().activate[activation](x, up, n, out);
}

GGUF_EXPORT("net_softmax")
void module_softmax(const float* x, uint32_t width, uint32_t count, float scale, float cap, float* out) {
  for (; count > 0; --count, x += width, out += width) network_kernels().softmax(x, width, scale, cap, out);
}

GGUF_EXPORT("net_sum_of_powers") void module_sum_of_powers(const float* x, uint32_t n, float* out) {
  const Powers powers = network_kernels().powers(x, n);
  out[0] = powers.max;
  out[1] = powers.sum;
}

GGUF_EXPORT("net_mean_of_rows")
void module_mean_of_rows(const float* x, uint32_t width, uint32_t count, float* out) {
  mean_of_rows(x, count, width, out);
}

GGUF_EXPORT("net_add") void module_add(float* x, const float* y, uint32_t n_x, uint32_t n_y) {
  for (uint32_t i = 0; i < n_x; i += n_y) network_kernels().add(x + i, y, n_y);
}

GGUF_EXPORT("net_scale") void module_scale(float* x, uint32_t n, float factor) {
  network_kernels().scale(x, n, factor);
}

GGUF_EXPORT("net_rope")
void module_rope(const float* x, uint32_t head_width, uint32_t head_count, uint32_t tokens,
                 const float* table, uint32_t pairs, bool adjacent, float* out) {
  if (out != x) std::memcpy(out, x, size_t{head_width} * head_count * tokens * sizeof *x);
  const auto kernel =
      network_kernels().rotate[static_cast<int>(adjacent ? Pairs::kAdjacent : Pairs::kHalves)];
  for (; tokens > 0; --tokens, table += 2 * pairs) {
    for (uint32_t h = 0; h < head_count; ++h, out += head_width) kernel(out, pairs, table, out);
  }
}

GGUF_EXPORT("net_new_cache")
KvCache* module_new_cache(uint32_t heads, uint32_t key_width, uint32_t value_width, uint32_t type) {
  const CacheShape shape{*find_format(type), heads, key_width, value_width};
  return KvCache::page_bytes(shape) == 0 ? nullptr : new KvCache(shape);
}

GGUF_EXPORT("net_free_cache") void module_free_cache(const KvCache* cache) {
  delete cache;
}

GGUF_EXPORT("net_cache_append")
Reply* module_cache_append(KvCache* cache, const float* keys, const float* values, uint32_t n_tokens) {
  const Status failure = cache->append(keys, values, n_tokens);
  return failure ? new Reply(*failure) : new Reply;
}

GGUF_EXPORT("net_cache_truncate") void module_cache_truncate(KvCache* cache, uint32_t length) {
  cache->truncate(length);
}

GGUF_EXPORT("net_cache_fork") KvCache* module_cache_fork(const KvCache* cache) {
  return new KvCache(*cache);
}

GGUF_EXPORT("net_cache_read")
void module_cache_read(const KvCache* cache, uint32_t first, uint32_t n_tokens, uint8_t* keys,
                       uint8_t* values) {
  cache->read(first, n_tokens, keys, values);
}

GGUF_EXPORT("net_cache_restore")
void module_cache_restore(KvCache* cache, const uint8_t* keys, const uint8_t* values, uint32_t n_tokens) {
  cache->restore(keys, values, n_tokens);
}

/** What net_attention of so many tokens has: units of work, bytes of scratch for a thread, multiplications.
 */
GGUF_EXPORT("net_attention_work")
void module_attention_work(uint32_t n_tokens, const KvCache* cache, uint32_t heads, double* out) {
  Attention attention;
  attention.n_tokens = n_tokens;
  attention.heads = heads;
  out[0] = static_cast<double>(attention.n_units(*cache));
  out[1] = static_cast<double>(attention.scratch_bytes(*cache));
  out[2] = static_cast<double>(attention.n_multiplications(*cache));
}

/** Units `first` to `end`. A window of 0: all positions; a cap of 0: none. Each thread has scratch_bytes at
 * `scratch`. */
GGUF_EXPORT("net_attention")
void module_attention(const float* queries, uint32_t n_tokens, const KvCache* cache, uint32_t heads,
                      float scale, bool causal, double window, float cap, const float* sinks, float* out,
                      uint8_t* scratch, uint32_t first, uint32_t end, uint32_t thread) {
  Attention attention;
  attention.queries = queries;
  attention.n_tokens = n_tokens;
  attention.heads = heads;
  attention.scale = scale;
  attention.causal = causal;
  attention.window = static_cast<uint64_t>(window);
  attention.cap = cap;
  attention.sinks = sinks;
  attention.out = out;
  scratch += thread * attention.scratch_bytes(*cache);
  for (; first < end; ++first) attention.do_unit(*cache, first, scratch);
}

}  // namespace gguf
