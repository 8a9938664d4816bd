// The functions that JavaScript calls, by the file that has them. addon.cc exports them;
// src/backend/native-surface.ts types them.
#pragma once

#include "binding/call.h"

namespace gguf::binding {

// open.cc: files, now or off the main thread, and bytes in memory
napi_value open_sync(const Call& call);
napi_value open_async(const Call& call);
napi_value parse_memory(const Call& call);
napi_value close_file(const Call& call);

// listing.cc: what a header says of some entries, as arrays: one per property instead of one object per entry
napi_value file_info(const Call& call);
napi_value list_keys(const Call& call);
napi_value list_tensors(const Call& call);
napi_value find_key(const Call& call);
napi_value find_tensor(const Call& call);
napi_value list_replaced_keys(const Call& call);
napi_value list_replaced_tensors(const Call& call);
napi_value key_bytes(const Call& call);
napi_value tensor_name_bytes(const Call& call);

// values.cc: metadata values as JavaScript values
napi_value metadata_value(const Call& call);
napi_value metadata_bytes(const Call& call);
napi_value read_metadata_bytes(const Call& call);

// file_handle.cc: the stored bytes of a tensor, in place or copied
napi_value tensor_bytes(const Call& call);
napi_value read_tensor_bytes(const Call& call);

// dequantize.cc: numbers, now or off the main thread
napi_value dequantize_sync(const Call& call);
napi_value dequantize_async(const Call& call);
napi_value dequantize_rows_sync(const Call& call);
napi_value dequantize_rows_async(const Call& call);
napi_value dequantize_blocks_sync(const Call& call);
napi_value dequantize_blocks_async(const Call& call);

// warm.cc: a file's bytes into memory
napi_value warm_async(const Call& call);

// multiply.cc: products with vectors, now or off the main thread
napi_value multiply_sync(const Call& call);
napi_value multiply_all_sync(const Call& call);
napi_value prepare_async(const Call& call);
napi_value multiply_async(const Call& call);
napi_value multiply_blocks_sync(const Call& call);
napi_value multiply_blocks_async(const Call& call);

// statistics.cc: what numbers are like, now or off the main thread
napi_value statistics_sync(const Call& call);
napi_value statistics_async(const Call& call);
napi_value statistics_of_blocks_async(const Call& call);

// compare.cc: how far the numbers of two tensors are apart
napi_value compare_sync(const Call& call);
napi_value compare_bytes_sync(const Call& call);
napi_value compare_async(const Call& call);
napi_value compare_blocks_async(const Call& call);
napi_value compare_bytes_async(const Call& call);
// quantize.cc: blocks for files that are written
napi_value quantize_sync(const Call& call);
napi_value quantize_async(const Call& call);
napi_value swap_block_bytes(const Call& call);

// network.cc: what lies between products
napi_value rms_norm(const Call& call);
napi_value layer_norm(const Call& call);
napi_value normalize_vectors(const Call& call);
napi_value activate_numbers(const Call& call);
napi_value softmax_vectors(const Call& call);
napi_value sum_of_powers(const Call& call);
napi_value rounding_error_of(const Call& call);
napi_value mean_of_all_rows(const Call& call);
napi_value add_into(const Call& call);
napi_value scale_into(const Call& call);
napi_value rope_heads(const Call& call);

// kv_cache.cc: keys and values, and attention to them
napi_value new_cache(const Call& call);
napi_value append_to_cache(const Call& call);
napi_value truncate_cache(const Call& call);
napi_value fork_cache(const Call& call);
napi_value read_cache(const Call& call);
napi_value restore_cache(const Call& call);
napi_value attend_to_cache(const Call& call);

// start_job.cc: the work that is done off the main thread
napi_value cancel_job(const Call& call);

// outputs.cc: memory for results
napi_value allocate_array(const Call& call);
napi_value trim_pool(const Call& call);

// machine.cc: what the addon knows and what the machine can do
napi_value list_formats(const Call& call);
napi_value describe_cpu(const Call& call);
napi_value end_process(const Call& call);

}  // namespace gguf::binding
