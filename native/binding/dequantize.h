// Dequantization as JavaScript asks for it: arguments checked, output found or made.
#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "binding/call.h"
#include "core/header.h"
#include "dequant/dequant.h"

namespace gguf::binding {

class FileHandle;

/** A checked range of whole blocks. */
struct BlockRange {
  const Format* format;
  Out out;
  uint64_t first_block;
  uint64_t n_blocks;

  uint64_t n_elements() const { return n_blocks * format->block_elements; }
  uint64_t src_bytes() const { return n_blocks * format->block_bytes; }
  uint64_t skipped_bytes() const { return first_block * format->block_bytes; }
  uint64_t dst_bytes() const { return n_elements() * out_bytes(out); }
};

/** An output: JavaScript's array and where its elements are until JavaScript runs again. */
struct Output {
  napi_value array = nullptr;
  void* data = nullptr;
  bool given = false;  // by the caller
};

/**
 * Reads dtype, start and end from the arguments `index`, `index` + 1 and `index` + 2, of `n_elements`
 * elements of `format`.
 */
BlockRange range_argument(const Call& call, size_t index, const Format& format, uint64_t n_elements,
                          const std::string* path);
/** dtype: 0, 1 or 2. */
Out dtype_argument(const Call& call, size_t index);
/**
 * The array of argument `index`, which must have `n_elements` elements fit for `out`. False where it is
 * undefined: then make one, but only when it is known that there is something to fill it with.
 */
bool output_argument(const Call& call, size_t index, Out out, uint64_t n_elements, const std::string* path,
                     Output* output);
/** A large result lies in memory of ours, which is used again; a small one, or where that cannot be, in
 * ordinary. */
Output new_output(Environment& environment, Out out, uint64_t n_elements);
/** The type of array that holds `out`. */
napi_typedarray_type output_type(Out out);

/** Rows of a tensor, by index. */
struct RowSelection {
  const std::vector<uint64_t>* rows;  // good until the next call into the addon
  BlockRange row;                     // a single row: the first
  uint64_t n_bytes;                   // from the start of the tensor to the end of the last row

  uint64_t n_elements() const { return rows->size() * row.n_elements(); }
};
/** Reads row numbers, how many they are and the dtype from the arguments `index`, + 1 and + 2. */
RowSelection rows_arguments(const Call& call, size_t index, const TensorInfo& tensor, const Format& format,
                            const std::string* path);

/** The Uint8Array of block bytes of argument 1 and the format of argument 0. */
struct BlockBytes {
  const Format* format;
  const uint8_t* data;
  uint64_t n_elements;
};
BlockBytes blocks_argument(const Call& call);
/** The same, looked up again: making an output calls into the runtime, after which no pointer is trusted. */
BlockBytes same_blocks(const Call& call, const BlockBytes& before);

/** A zeroed array in memory of ours: allocate(length, dtype). */
napi_value allocate_array(const Call& call);
/** Gives the memory of collected results back to the system: trim(). */
napi_value trim_pool(const Call& call);

napi_value dequantize_sync(const Call& call);
napi_value dequantize_rows(const Call& call);
napi_value dequantize_blocks_sync(const Call& call);

}  // namespace gguf::binding
