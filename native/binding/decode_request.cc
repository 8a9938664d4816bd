#include "binding/decode_request.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/strings.h"
#include "core/checked.h"

namespace gguf::binding {

namespace {

/**
 * The row numbers of argument 2, as many as argument 3 says, each below `n_rows`. Copied before they are
 * checked, since another thread may be writing to the array.
 */
std::vector<uint64_t> rows_argument(const Call& call, uint64_t n_rows, const std::string* path) {
  const TypedArray array = array_argument(call, 2, "rows", napi_float64_array);
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

void DecodeRequest::take_range(const Call& call, uint64_t n_elements) {
  selection.format = format();
  selection.out = dtype_argument(call, 2);
  selection.n_blocks = take_blocks(call, 3, n_elements);
}

DecodeRequest DecodeRequest::of_range(const Call& call) {
  DecodeRequest request;
  const TensorInfo& tensor = request.take_tensor(call);
  request.take_range(call, tensor.n_elements);
  return request;
}

DecodeRequest DecodeRequest::of_rows(const Call& call) {
  DecodeRequest request;
  const TensorInfo& tensor = request.take_tensor(call);
  BlockSelection& selection = request.selection;
  selection.format = request.format();
  selection.rows = rows_argument(call, tensor.n_rows(), request.path());
  selection.out = dtype_argument(call, 4);
  selection.row_blocks = tensor.shape[0] / selection.format.block_elements;
  const std::vector<uint64_t>& rows = selection.rows;
  if (rows.size() > UINT64_MAX / sizeof(float) / std::max<uint64_t>(1, tensor.shape[0])) {
    throw_range(call.environment(), std::to_string(rows.size()) + " rows do not fit in memory",
                request.path());
  }
  selection.n_blocks = rows.size() * selection.row_blocks;
  // From the start of the tensor to the end of the last row that is needed.
  const uint64_t n_rows = rows.empty() ? 0 : *std::max_element(rows.begin(), rows.end()) + 1;
  request.take_bytes(0, n_rows * selection.row_blocks * selection.format.block_bytes);
  return request;
}

DecodeRequest DecodeRequest::of_bytes(const Call& call, bool big_endian) {
  DecodeRequest request;
  request.take_array(call, big_endian);
  const Format& format = request.format();
  request.take_range(call, request.array_bytes() / format.block_bytes * format.block_elements);
  return request;
}

BlockSource DecodeRequest::pin(const Call& call, BlockHold* hold) {
  if (selection.row_blocks == 0) return BlockRequest::pin(call, hold);
  BlockSource source = locate(call);
  if (hold_in_place(call, source, hold)) return source;
  hold->memory = copy_rows(source.data, &selection);
  source.data = hold->memory->data();
  return source;
}

}  // namespace gguf::binding
