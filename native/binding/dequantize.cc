#include "binding/dequantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "binding/blocks.h"
#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/page_pool.h"
#include "binding/strings.h"
#include "core/pages.h"

namespace gguf::binding {

namespace {

[[noreturn]] void throw_range(const Call& call, std::string detail, const std::string* path) {
  throw_error(call.environment(), Error{ErrorCode::kRange, std::move(detail)}, path);
}

uint64_t block_argument(const Call& call, size_t index, const char* name, const Format& format,
                        uint64_t n_elements, const std::string* path) {
  const uint64_t element = call.whole(index, name);
  if (element > n_elements) {
    throw_range(call,
                std::string(name) + " must be at most " + std::to_string(n_elements) + ", found " +
                    std::to_string(element),
                path);
  }
  if (element % format.block_elements != 0) {
    throw_range(call,
                std::string(name) + " must be a multiple of the " + std::to_string(format.block_elements) +
                    " elements of a block, found " + std::to_string(element),
                path);
  }
  return element / format.block_elements;
}

/**
 * The row numbers of argument `index`, as many as argument `index` + 1 says, checked. They are copied, since
 * another thread may be writing to the array.
 */
const std::vector<uint64_t>& rows_argument(const Call& call, size_t index, const TensorInfo& tensor,
                                           const std::string* path) {
  TypedArray array;
  if (!get_typed_array(call.env(), call[index], &array) || array.type != napi_float64_array) {
    throw_arg_type(call.env(), "rows", "an instance of Float64Array");
  }
  const uint64_t count = call.whole(index + 1, "count");
  if (count > array.length) {
    throw_range(call, "rows has " + std::to_string(array.length) + " elements, not " + std::to_string(count),
                path);
  }
  uint64_t n_rows = 1;
  for (int dim = 1; dim < TensorInfo::kMaxDims; ++dim) {
    // Rows without elements can be more than 64 bits can count.
    n_rows = tensor.shape[dim] != 0 && n_rows > UINT64_MAX / tensor.shape[dim] ? UINT64_MAX
                                                                               : n_rows * tensor.shape[dim];
  }
  std::vector<uint64_t>& rows = call.environment().rows;
  rows.clear();
  rows.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < count; ++i) {
    double row;
    std::memcpy(&row, array.data + i * sizeof row, sizeof row);
    if (!(row >= 0 && row < static_cast<double>(n_rows) && row == std::floor(row))) {
      throw_range(call,
                  "rows[" + std::to_string(i) + "] must be a whole number below " + std::to_string(n_rows) +
                      ", found " + number_text(row),
                  path);
    }
    rows.push_back(static_cast<uint64_t>(row));
  }
  return rows;
}

/** Decodes as many blocks as `range` has, from block `first_block` of `source` on, and throws what fails. */
void decode(const Call& call, const BlockSource& source, uint64_t first_block, const BlockRange& range,
            void* dst, const std::string* path) {
  const Status failure = decode_blocks(source, *range.format, range.out, may_stream(range.dst_bytes()),
                                       first_block, range.n_blocks, dst, call.environment().scratch);
  if (failure) throw_error(call.environment(), *failure, path);
}

/** Throws unless the `n_bytes` from the start of `source` on that were decoded were the file's. */
void check_decoded(const Call& call, const BlockSource& source, uint64_t n_bytes, const std::string* path) {
  if (const Status lost = check_source(source, 0, n_bytes)) throw_error(call.environment(), *lost, path);
}

}  // namespace

napi_typedarray_type output_type(Out out) {
  return out == Out::kFloat32 ? napi_float32_array : napi_uint16_array;
}

Out dtype_argument(const Call& call, size_t index) {
  const uint64_t dtype = call.whole(index, "dtype");
  if (dtype > 2) throw_range(call, "dtype must be 0, 1 or 2, found " + std::to_string(dtype), nullptr);
  return static_cast<Out>(dtype);
}

BlockRange range_argument(const Call& call, size_t index, const Format& format, uint64_t n_elements,
                          const std::string* path) {
  BlockRange range;
  range.format = &format;
  range.out = dtype_argument(call, index);
  range.first_block = block_argument(call, index + 1, "start", format, n_elements, path);
  const uint64_t end = block_argument(call, index + 2, "end", format, n_elements, path);
  if (range.first_block > end) throw_range(call, "start is past end", path);
  range.n_blocks = end - range.first_block;
  return range;
}

Output new_output(Environment& environment, Out out, uint64_t n_elements) {
  const uint64_t n_bytes = n_elements * out_bytes(out);
  Output output{nullptr, nullptr, false};
  const bool is_large = n_bytes >= page_pool::kMinBytes;
  if (is_large && environment.lent_results.has_room(n_bytes)) {
    const auto hold = std::make_shared<BufferHold>();
    napi_value buffer = nullptr;
    try {
      hold->memory = PinnedMemory::allocate(n_bytes);
      output.data = hold->memory->data();
      buffer = new_external(environment, output.data, n_bytes, hold);
    } catch (const std::bad_alloc&) {
      // JavaScript will say that there is no room for so much.
    }
    if (buffer != nullptr) {
      environment.lent_results.lend(buffer, hold);
      output.array = new_view(environment, output_type(out), buffer, 0, n_elements);
      return output;
    }
  }
  output.array = new_typed_array(environment, output_type(out), n_elements, &output.data);
  if (is_large) want_huge_pages(output.data, static_cast<size_t>(n_bytes));
  return output;
}

bool output_argument(const Call& call, size_t index, Out out, uint64_t n_elements, const std::string* path,
                     Output* output) {
  TypedArray array;
  if (!get_typed_array(call.env(), call[index], &array)) {
    if (call.is_undefined(index)) return false;
    array.type = napi_uint8_array;  // never right
  }
  if (array.type != output_type(out)) {
    throw_arg_type(call.env(), "out",
                   out == Out::kFloat32 ? "an instance of Float32Array" : "an instance of Uint16Array");
  }
  if (array.length != n_elements) {
    throw_range(call,
                "out holds " + std::to_string(array.length) + " elements, the result has " +
                    std::to_string(n_elements),
                path);
  }
  // Possible only over an external buffer that starts at an odd address.
  if (reinterpret_cast<uintptr_t>(array.data) % out_bytes(out) != 0) {
    throw_range(call, "the memory of out is not aligned to its elements", path);
  }
  // An array that was never written to has no pages yet: it costs half, now and on every later use, if these
  // are large.
  const uint64_t n_bytes = n_elements * out_bytes(out);
  if (may_stream(n_bytes) && !pages_are_present(array.data + n_bytes / 2, 1)) {
    want_huge_pages(array.data, static_cast<size_t>(n_bytes));
  }
  *output = {call[index], array.data, true};
  return true;
}

BlockBytes blocks_argument(const Call& call) {
  const uint32_t type = call.uint32(0, "type");
  const Format* const format = find_format(type);
  if (format == nullptr) {
    throw_error(call.environment(), Error{ErrorCode::kUnsupportedType,
                                          "the tensor type " + std::to_string(type) + " is not known"});
  }
  TypedArray array;
  if (!get_typed_array(call.env(), call[1], &array) || array.type != napi_uint8_array) {
    throw_arg_type(call.env(), "blocks", "an instance of Uint8Array");
  }
  if (array.length % format->block_bytes != 0) {
    throw_range(call,
                std::to_string(array.length) + " bytes are not a whole number of blocks of " +
                    std::to_string(format->block_bytes) + " bytes",
                nullptr);
  }
  return {format, array.data, array.length / format->block_bytes * format->block_elements};
}

BlockBytes same_blocks(const Call& call, const BlockBytes& before) {
  const BlockBytes now = blocks_argument(call);
  if (now.n_elements != before.n_elements) throw_range(call, "blocks changed its length", nullptr);
  return now;
}

napi_value allocate_array(const Call& call) {
  const uint64_t length = call.whole(0, "length");
  const Out out = dtype_argument(call, 1);
  if (length > SIZE_MAX / out_bytes(out))
    throw_range(call, "an array of that length does not fit in memory", nullptr);
  const uint64_t n_bytes = length * out_bytes(out);
  Environment& environment = call.environment();
  if (n_bytes > 0) {
    const auto hold = std::make_shared<BufferHold>();
    try {
      hold->memory = PinnedMemory::allocate(n_bytes);
    } catch (const std::bad_alloc&) {
      throw_range(call, "there is no memory for " + std::to_string(n_bytes) + " bytes", nullptr);
    }
    uint8_t* const data = hold->memory->data();
    std::memset(data, 0, static_cast<size_t>(n_bytes));
    const napi_value buffer = new_external(environment, data, n_bytes, hold);
    if (buffer != nullptr) return new_view(environment, output_type(out), buffer, 0, length);
  }
  void* data;
  return new_typed_array(environment, output_type(out), length, &data);
}

napi_value trim_pool(const Call&) {
  page_pool::trim();
  return nullptr;
}

napi_value dequantize_sync(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  Environment& environment = call.environment();
  const TensorInfo& tensor = file.tensor(call, 1);
  const Format& format = file.format_of(environment, tensor);
  const BlockRange range = range_argument(call, 2, format, tensor.n_elements, file.path());
  Output output;
  if (!output_argument(call, 5, range.out, range.n_elements(), file.path(), &output)) {
    file.blocks(environment, tensor, range.skipped_bytes(), range.src_bytes());
    output = new_output(environment, range.out, range.n_elements());
  }
  const BlockSource source = file.blocks(environment, tensor, range.skipped_bytes(), range.src_bytes());
  decode(call, source, 0, range, output.data, file.path());
  check_decoded(call, source, range.src_bytes(), file.path());
  return output.array;
}

RowSelection rows_arguments(const Call& call, size_t index, const TensorInfo& tensor, const Format& format,
                            const std::string* path) {
  const std::vector<uint64_t>& rows = rows_argument(call, index, tensor, path);
  const BlockRange row{&format, dtype_argument(call, index + 2), 0, tensor.shape[0] / format.block_elements};
  if (rows.size() > UINT64_MAX / sizeof(float) / std::max<uint64_t>(1, row.n_elements())) {
    throw_range(call, std::to_string(rows.size()) + " rows do not fit in memory", path);
  }
  const uint64_t n_rows = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1;
  return {&rows, row, n_rows * row.src_bytes()};
}

napi_value dequantize_rows(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  Environment& environment = call.environment();
  const TensorInfo& tensor = file.tensor(call, 1);
  const Format& format = file.format_of(environment, tensor);
  const RowSelection selection = rows_arguments(call, 2, tensor, format, file.path());
  const BlockRange& row = selection.row;
  Output output;
  if (!output_argument(call, 5, row.out, selection.n_elements(), file.path(), &output)) {
    file.blocks(environment, tensor, 0, selection.n_bytes);
    output = new_output(environment, row.out, selection.n_elements());
  }
  const BlockSource source = file.blocks(environment, tensor, 0, selection.n_bytes);
  uint8_t* to = static_cast<uint8_t*>(output.data);
  for (const uint64_t index : *selection.rows) {
    decode(call, source, index * row.n_blocks, row, to, file.path());
    to += row.dst_bytes();
  }
  check_decoded(call, source, selection.n_bytes, file.path());
  return output.array;
}

napi_value dequantize_blocks_sync(const Call& call) {
  BlockBytes blocks = blocks_argument(call);
  const BlockRange range = range_argument(call, 2, *blocks.format, blocks.n_elements, nullptr);
  Output output;
  if (!output_argument(call, 5, range.out, range.n_elements(), nullptr, &output)) {
    output = new_output(call.environment(), range.out, range.n_elements());
    blocks = same_blocks(call, blocks);
  }
  BlockSource source;
  source.data = blocks.data;
  decode(call, source, range.first_block, range, output.data, nullptr);
  return output.array;
}

}  // namespace gguf::binding
