// What the addon exports: src/backend/native-surface.ts types it.
#include <napi.h>

#include <new>

#include "binding/call.h"
#include "binding/entry_points.h"
#include "binding/environment.h"

namespace gguf::binding {

namespace {

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  Environment& environment = Environment::install(env);
  const auto add = [&](const char* name, napi_callback function) {
    napi_value value;
    check(env, napi_create_function(env, name, NAPI_AUTO_LENGTH, function, &environment, &value));
    exports.Set(name, value);
  };
  exports.Set("failureMark", environment.failure_mark.Value());

  add("open", entry<open_sync>);
  add("openAsync", entry<open_async>);
  add("parse", entry<parse_memory>);
  add("close", entry<close_file>);

  add("info", entry<file_info>);
  add("keys", entry<list_keys>);
  add("findKey", entry<find_key>);
  add("replacedKeys", entry<list_replaced_keys>);
  add("value", entry<metadata_value>);
  add("valueBytes", entry<metadata_bytes>);
  add("readValue", entry<read_metadata_bytes>);
  add("keyBytes", entry<key_bytes>);
  add("tensors", entry<list_tensors>);
  add("findTensor", entry<find_tensor>);
  add("replacedTensors", entry<list_replaced_tensors>);
  add("tensorNameBytes", entry<tensor_name_bytes>);
  add("bytes", entry<tensor_bytes>);
  add("readBytes", entry<read_tensor_bytes>);

  add("dequantize", entry<dequantize_sync>);
  add("dequantizeAsync", entry<dequantize_async>);
  add("rows", entry<dequantize_rows_sync>);
  add("rowsAsync", entry<dequantize_rows_async>);
  add("dequantizeBlocks", entry<dequantize_blocks_sync>);
  add("dequantizeBlocksAsync", entry<dequantize_blocks_async>);

  add("matmul", entry<multiply_sync>);
  add("matmulAll", entry<multiply_all_sync>);
  add("prepareAsync", entry<prepare_async>);
  add("matmulAsync", entry<multiply_async>);
  add("matmulBlocks", entry<multiply_blocks_sync>);
  add("matmulBlocksAsync", entry<multiply_blocks_async>);

  add("warm", entry<warm_async>);
  add("stats", entry<statistics_sync>);
  add("statsAsync", entry<statistics_async>);
  add("statsBlocksAsync", entry<statistics_of_blocks_async>);

  add("compare", entry<compare_sync>);
  add("compareBytes", entry<compare_bytes_sync>);
  add("compareAsync", entry<compare_async>);
  add("compareBlocksAsync", entry<compare_blocks_async>);
  add("compareBytesAsync", entry<compare_bytes_async>);
  add("quantize", entry<quantize_sync>);
  add("quantizeAsync", entry<quantize_async>);
  add("swapBytes", entry<swap_block_bytes>);

  add("rmsNorm", entry<rms_norm>);
  add("layerNorm", entry<layer_norm>);
  add("normalizeVectors", entry<normalize_vectors>);
  add("activate", entry<activate_numbers>);
  add("softmax", entry<softmax_vectors>);
  add("sumOfPowers", entry<sum_of_powers>);
  add("roundingError", entry<rounding_error_of>);
  add("meanOfRows", entry<mean_of_all_rows>);
  add("addInto", entry<add_into>);
  add("scaleInto", entry<scale_into>);
  add("rope", entry<rope_heads>);

  add("newCache", entry<new_cache>);
  add("cacheAppend", entry<append_to_cache>);
  add("cacheTruncate", entry<truncate_cache>);
  add("cacheFork", entry<fork_cache>);
  add("cacheRead", entry<read_cache>);
  add("cacheRestore", entry<restore_cache>);
  add("attention", entry<attend_to_cache>);

  add("cancel", entry<cancel_job>);

  add("allocate", entry<allocate_array>);
  add("trim", entry<trim_pool>);

  add("formats", entry<list_formats>);
  add("cpu", entry<describe_cpu>);
  add("endProcess", entry<end_process>);
  return exports;
}

}  // namespace

}  // namespace gguf::binding

namespace {

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  try {
    return gguf::binding::initialize(env, exports);
  } catch (const std::bad_alloc&) {  // which node-addon-api lets through to Node, and that ends the process
    throw Napi::Error::New(env, "out of memory");
  }
}

NODE_API_MODULE(gguf_native, initialize)

}  // namespace
