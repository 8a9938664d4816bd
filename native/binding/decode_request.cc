#include "binding/decode_request.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/strings.h"
#include "core/checked.h"

namespace gguf::binding {

namespace {

constexpr size_t kOutputArgument = 5;

/** The element of argument `index`, of `n_elements`, as a number of blocks. */
uint64_t block_argument(const Call& call, size_t index, const char* name, const Format& format,
                        uint64_t n_elements, const std::string* path) {
  const uint64_t element = call.whole(index, name);
  if (element > n_elements) {
    throw_range(call.environment(),
                std::string(name) + " must be at most " + std::to_string(n_elements) + ", found " +
                    std::to_string(element),
                path);
  }
  if (element % format.block_elements != 0) {
    throw_range(call.environment(),
                std::string(name) + " must be a multiple of the " + std::to_string(format.block_elements) +
                    " elements of a block, found " + std::to_string(element),
                path);
  }
  return element / format.block_elements;
}

uint64_t count_rows(const TensorInfo& tensor) {
  uint64_t n_rows = 1;
  for (int dim = 1; dim < TensorInfo::kMaxDims; ++dim) {
    // Rows without elements can be more than 64 bits can count.
    n_rows = tensor.shape[dim] != 0 && n_rows > UINT64_MAX / tensor.shape[dim] ? UINT64_MAX
                                                                               : n_rows * tensor.shape[dim];
  }
  return n_rows;
}

/**
 * The row numbers of argument 2, as many as argument 3 says, each below `n_rows`. Copied before they are
 * checked, since another thread may be writing to the array.
 */
std::vector<uint64_t> rows_argument(const Call& call, uint64_t n_rows, const std::string* path) {
  TypedArray array;
  if (!get_typed_array(call.env(), call[2], &array) || array.type != napi_float64_array) {
    throw_arg_type(call.env(), "rows", "an instance of Float64Array");
  }
  const uint64_t count = call.whole(3, "count");
  if (count > array.length) {
    throw_range(call.environment(),
                "rows has " + std::to_string(array.length) + " elements, not " + std::to_string(count), path);
  }
  // Taken out of the environment: a call that is made before this one returns gets a vector of its own.
  std::vector<uint64_t> rows = std::move(call.environment().spare_rows);
  rows.clear();
  rows.reserve(to_size(count));
  for (size_t i = 0; i < count; ++i) {
    double row;
    std::memcpy(&row, array.data + i * sizeof row, sizeof row);
    if (!(row >= 0 && row < static_cast<double>(n_rows) && row == std::floor(row))) {
      throw_range(call.environment(),
                  "rows[" + std::to_string(i) + "] must be a whole number below " + std::to_string(n_rows) +
                      ", found " + number_text(row),
                  path);
    }
    rows.push_back(static_cast<uint64_t>(row));
  }
  return rows;
}

/** The Uint8Array of whole blocks of argument 1. */
TypedArray blocks_argument(const Call& call, const Format& format) {
  TypedArray array;
  if (!get_typed_array(call.env(), call[1], &array) || array.type != napi_uint8_array) {
    throw_arg_type(call.env(), "blocks", "an instance of Uint8Array");
  }
  if (array.length % format.block_bytes != 0) {
    throw_range(call.environment(), std::to_string(array.length) +
                                        " bytes are not a whole number of blocks of " +
                                        std::to_string(format.block_bytes) + " bytes");
  }
  return array;
}

/** Copies the rows of a selection one after the other, and makes them the rows of that copy. */
std::shared_ptr<PinnedMemory> copy_rows(const uint8_t* tensor, BlockSelection* selection) {
  const auto row_bytes = to_size(selection->row_blocks * selection->format.block_bytes);
  std::shared_ptr<PinnedMemory> copy = PinnedMemory::allocate(selection->rows.size() * row_bytes);
  uint8_t* to = copy->data();
  uint64_t n_copied = 0;
  for (uint64_t& row : selection->rows) {
    std::memcpy(to, tensor + row * row_bytes, row_bytes);
    to += row_bytes;
    row = n_copied++;
  }
  return copy;
}

}  // namespace

uint64_t DecodeRequest::take_range(const Call& call, uint64_t n_elements) {
  const Format& format = selection.format;
  const uint64_t first_block = block_argument(call, 3, "start", format, n_elements, path());
  const uint64_t end_block = block_argument(call, 4, "end", format, n_elements, path());
  if (first_block > end_block) throw_range(call.environment(), "start is past end", path());
  selection.n_blocks = end_block - first_block;
  src_bytes_ = selection.n_blocks * format.block_bytes;
  return first_block;
}

DecodeRequest DecodeRequest::of_range(const Call& call) {
  DecodeRequest request;
  FileHandle& file = FileHandle::of(call, 0);
  request.file_ = &file;
  const TensorInfo& tensor = file.tensor(call, 1);
  request.selection.format = file.format_of(call.environment(), tensor);
  request.selection.out = dtype_argument(call, 2);
  const uint64_t first_block = request.take_range(call, tensor.n_elements);
  request.src_offset_ = tensor.offset + first_block * request.selection.format.block_bytes;
  return request;
}

DecodeRequest DecodeRequest::of_rows(const Call& call) {
  DecodeRequest request;
  FileHandle& file = FileHandle::of(call, 0);
  request.file_ = &file;
  const TensorInfo& tensor = file.tensor(call, 1);
  BlockSelection& selection = request.selection;
  selection.format = file.format_of(call.environment(), tensor);
  selection.rows = rows_argument(call, count_rows(tensor), file.path());
  selection.out = dtype_argument(call, 4);
  selection.row_blocks = tensor.shape[0] / selection.format.block_elements;
  const std::vector<uint64_t>& rows = selection.rows;
  if (rows.size() > UINT64_MAX / sizeof(float) / std::max<uint64_t>(1, tensor.shape[0])) {
    throw_range(call.environment(), std::to_string(rows.size()) + " rows do not fit in memory", file.path());
  }
  selection.n_blocks = rows.size() * selection.row_blocks;
  request.src_offset_ = tensor.offset;
  // From the start of the tensor to the end of the last row that is needed.
  const uint64_t n_rows = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1;
  request.src_bytes_ = n_rows * selection.row_blocks * selection.format.block_bytes;
  return request;
}

DecodeRequest DecodeRequest::of_bytes(const Call& call, bool big_endian) {
  DecodeRequest request;
  BlockSelection& selection = request.selection;
  selection.format = find_format_or_throw(call.environment(), call.uint32(0, "type"));
  request.array_bytes_ = blocks_argument(call, selection.format).length;
  request.big_endian_ = big_endian;
  selection.out = dtype_argument(call, 2);
  const uint64_t n_blocks = request.array_bytes_ / selection.format.block_bytes;
  const uint64_t first_block = request.take_range(call, n_blocks * selection.format.block_elements);
  request.src_offset_ = first_block * selection.format.block_bytes;
  return request;
}

const std::string* DecodeRequest::path() const {
  return file_ == nullptr ? nullptr : file_->path();
}

Output DecodeRequest::find_or_make_output(const Call& call) const {
  const uint64_t n_elements = selection.n_elements();
  if (const auto given = output_argument(call, kOutputArgument, selection.out, n_elements, path())) {
    return *given;
  }
  locate(call);
  return new_output(call.environment(), selection.out, n_elements);
}

BlockSource DecodeRequest::locate(const Call& call) const {
  if (file_ != nullptr) return file_->blocks(call.environment(), src_offset_, src_bytes_);
  const TypedArray array = blocks_argument(call, selection.format);
  if (array.length != array_bytes_) throw_range(call.environment(), "blocks changed its length");
  BlockSource source;
  source.data = array.data + src_offset_;
  source.big_endian = big_endian_;
  return source;
}

BlockSource DecodeRequest::pin(const Call& call, BlockHold* hold) {
  BlockSource source = locate(call);
  if (file_ != nullptr && !file_->is_memory()) {
    hold->file = file_->shared_file();
    return source;
  }
  if (src_bytes_ == 0) return source;
  const napi_value array = file_ == nullptr ? call[1] : file_->memory();
  if (is_shared(call.env(), array)) {
    hold->array = Napi::Persistent(Napi::Object(call.env(), array));
    return source;
  }
  hold->memory = PinnedMemory::find(source.data, src_bytes_);
  if (hold->memory != nullptr) return source;
  if (selection.row_blocks != 0) {
    hold->memory = copy_rows(source.data, &selection);
    source.data = hold->memory->data();
  } else {
    hold->copy = std::make_unique<SourceCopy>(call.env(), array, source.data, src_bytes_);
    source.data = hold->copy->data();
  }
  return source;
}

}  // namespace gguf::binding
