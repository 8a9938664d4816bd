// Caches of keys and values, and attention to them.
#include "network/kv_cache.h"

#include <algorithm>
#include <memory>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/tagged.h"
#include "binding/work_now.h"
#include "core/checked.h"
#include "network/attention_units.h"
#include "work/chunked_product.h"
#include "work/chunked_task.h"

namespace gguf::binding {

namespace {

constexpr napi_type_tag kCacheTag = {0x6c1f84e2d7a94b03, 0xb25d90f3e8714ac6};

/** A cache that the garbage collector is told the memory of, pages that are shared among forks included. */
class CacheHandle {
 public:
  CacheHandle(napi_env env, KvCache made) : cache(std::move(made)), env_(env) { report(); }
  ~CacheHandle() { adjust(0); }
  CacheHandle(const CacheHandle&) = delete;
  CacheHandle& operator=(const CacheHandle&) = delete;

  static napi_value wrap(const Call& call, KvCache cache) {
    return binding::wrap(call.env(), kCacheTag, std::make_unique<CacheHandle>(call.env(), std::move(cache)),
                         sizeof(CacheHandle));
  }
  static CacheHandle& of(const Call& call, size_t index) {
    CacheHandle* const handle = unwrap<CacheHandle>(call.env(), kCacheTag, call[index]);
    if (handle == nullptr) throw_arg_type(call.environment(), "cache", "a cache of keys and values");
    return *handle;
  }
  /** After a change. */
  void report() { adjust(static_cast<int64_t>(cache.n_pages() * KvCache::page_bytes(cache.shape()))); }

  KvCache cache;

 private:
  void adjust(int64_t n_bytes) {
    int64_t total;
    napi_adjust_external_memory(env_, n_bytes - reported_, &total);
    reported_ = n_bytes;
  }

  const napi_env env_;
  int64_t reported_ = 0;
};

TypedArray bytes_argument(const Call& call, size_t index, const char* name) {
  return array_argument(call, index, name, napi_uint8_array);
}

/** Tokens whose keys have so many numbers or bytes, which must be those of as many values. */
uint64_t tokens_of(const Call& call, uint64_t keys, uint64_t key_size, uint64_t values, uint64_t value_size) {
  call.expect(keys % key_size == 0 && values % value_size == 0 && keys / key_size == values / value_size,
              "keys and values must be those of whole tokens");
  return keys / key_size;
}

}  // namespace

napi_value new_cache(const Call& call) {
  CacheShape shape;
  shape.heads = call.uint32(0, "heads");
  shape.key_width = call.uint32(1, "keyWidth");
  shape.value_width = call.uint32(2, "valueWidth");
  const uint32_t type = call.uint32(3, "type");
  call.expect(type == 0 || type == 1 || type == 8, "a cache is of type F32, F16 or Q8_0");
  shape.format = find_format_or_throw(call.environment(), type);
  const uint64_t block = shape.format.block_elements;
  call.expect(shape.key_width > 0 && shape.value_width > 0 && shape.key_width % block == 0 &&
                  shape.value_width % block == 0 && KvCache::page_bytes(shape) > 0,
              "keys and values must be whole blocks, and 256 tokens take at most 2 GiB");
  return CacheHandle::wrap(call, KvCache(shape));
}

napi_value fork_cache(const Call& call) {
  return CacheHandle::wrap(call, CacheHandle::of(call, 0).cache);
}

napi_value truncate_cache(const Call& call) {
  CacheHandle& handle = CacheHandle::of(call, 0);
  handle.cache.truncate(call.whole(1, "length"));
  handle.report();
  return nullptr;
}

napi_value append_to_cache(const Call& call) {
  CacheHandle& handle = CacheHandle::of(call, 0);
  const CacheShape& shape = handle.cache.shape();
  const TypedArray keys = floats_argument(call, 1, "keys"), values = floats_argument(call, 2, "values");
  const uint64_t n = tokens_of(call, keys.length, shape.heads * shape.key_width, values.length,
                               shape.heads * shape.value_width);
  const Status failure = handle.cache.append(reinterpret_cast<const float*>(keys.data),
                                             reinterpret_cast<const float*>(values.data), n);
  if (failure) throw_error(call.environment(), *failure);
  handle.report();
  return nullptr;
}

napi_value restore_cache(const Call& call) {
  CacheHandle& handle = CacheHandle::of(call, 0);
  const CacheShape& shape = handle.cache.shape();
  const TypedArray keys = bytes_argument(call, 1, "keys"), values = bytes_argument(call, 2, "values");
  const uint64_t n = tokens_of(call, keys.length, shape.key_bytes(), values.length, shape.value_bytes());
  handle.cache.restore(keys.data, values.data, n);
  handle.report();
  return nullptr;
}

napi_value read_cache(const Call& call) {
  const CacheHandle& handle = CacheHandle::of(call, 0);
  const CacheShape& shape = handle.cache.shape();
  const uint64_t first = call.whole(1, "first"), n = call.whole(2, "count");
  call.expect(first <= handle.cache.length() && n <= handle.cache.length() - first, "tokens must be there");
  const TypedArray keys = bytes_argument(call, 3, "keys"), values = bytes_argument(call, 4, "values");
  call.expect(keys.length / shape.key_bytes() == n && values.length / shape.value_bytes() == n &&
                  keys.length % shape.key_bytes() == 0 && values.length % shape.value_bytes() == 0,
              "keys and values must have room for the tokens");
  handle.cache.read(first, n, keys.data, values.data);
  return nullptr;
}

napi_value attend_to_cache(const Call& call) {
  const TypedArray queries = floats_argument(call, 0, "queries");
  const KvCache& cache = CacheHandle::of(call, 1).cache;
  const CacheShape& shape = cache.shape();
  Attention attention;
  attention.queries = reinterpret_cast<const float*>(queries.data);
  attention.heads = call.uint32(2, "heads");
  attention.scale = call.number(3, "scale");
  attention.causal = call.boolean(4, "causal");
  attention.window = call.whole(5, "window");
  attention.cap = call.number(6, "cap");
  call.expect(attention.heads > 0 && attention.heads % shape.heads == 0,
              "heads must be a multiple of those of the cache");
  const uint64_t token = attention.heads * shape.key_width;
  attention.n_tokens = queries.length / token;
  call.expect(queries.length % token == 0 && attention.n_tokens <= cache.length(),
              "queries must be of the last tokens of the cache");
  if (!call.is_undefined(7)) {
    const TypedArray sinks = floats_argument(call, 7, "sinks");
    call.expect(sinks.length == attention.heads, "sinks must have a number for each head");
    attention.sinks = reinterpret_cast<const float*>(sinks.data);
  }
  const TypedArray out = floats_argument(call, 8, "out");
  const uint64_t out_token = attention.heads * shape.value_width;
  call.expect(out.length / out_token == attention.n_tokens && out.length % out_token == 0,
              "out must have a vector of values for each query");
  attention.out = reinterpret_cast<float*>(out.data);
  const uint64_t most = threads_argument(call, 9);
  if (attention.n_tokens == 0) return nullptr;
  const size_t scratch_bytes = to_size(attention.scratch_bytes(cache));
  ChunkedTask work(attention.n_units(cache), 1,
                   [&](uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
                     if (scratch.size() < scratch_bytes) scratch.resize(scratch_bytes);
                     for (uint64_t i = first; i < first + count; ++i) {
                       attention.do_unit(cache, i, scratch.data());
                     }
                   });
  const uint64_t worth = attention.n_multiplications(cache) / kThreadMultiplications;
  work_now(call, work, useful_threads(worth, std::min(most, work.n_chunks())), nullptr);
  return nullptr;
}

}  // namespace gguf::binding
