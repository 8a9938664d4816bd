#include "binding/product_request.h"

#include <string>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "core/header.h"

namespace gguf::binding {

namespace {

Activations activations(const Call& call, size_t index) {
  return call.boolean(index, "int8") ? Activations::kInt8 : Activations::kFloat32;
}

/** The rows of a tensor that is taken as rows of so many columns. */
uint64_t rows_of(const Call& call, const TensorInfo& tensor, const ProductShape& shape) {
  if (shape.columns == tensor.shape[0]) return tensor.n_rows();
  if (shape.columns == 0) return 0;
  if (shape.columns % shape.format.block_elements != 0 || tensor.n_elements % shape.columns != 0) {
    throw_range(call.environment(), "a tensor of " + std::to_string(tensor.n_elements) +
                                        " elements has no rows of " + std::to_string(shape.columns));
  }
  return tensor.n_elements / shape.columns;
}

}  // namespace

ProductRequest ProductRequest::of_tensor(const Call& call) {
  ProductRequest request;
  const TensorInfo& tensor = request.take_tensor(call);
  ProductShape& shape = request.shape;
  shape.format = request.format();
  shape.columns = call.is_undefined(2) ? tensor.shape[0] : call.whole(2, "columns");
  const uint64_t n_rows = rows_of(call, tensor, shape);
  const uint64_t start = call.whole(4, "start"), end = call.whole(5, "end");
  if (start > end || end > n_rows) {
    throw_range(call.environment(),
                "rows " + std::to_string(start) + " to " + std::to_string(end) + " are not all in the " +
                    std::to_string(n_rows) + " of the tensor",
                request.path());
  }
  shape.n_rows = end - start;
  request.take_bytes(start * shape.row_bytes(), shape.n_rows * shape.row_bytes());
  shape.activations = activations(call, 7);
  if (shape.activations == Activations::kInt8 && shape.columns == tensor.shape[0]) {
    shape.prepared = FileHandle::of(call, 0).prepared(call, 1);
    shape.first_row = start;
  }
  request.out_argument_ = 6;
  request.take_vectors(call, 3);
  return request;
}

ProductRequest ProductRequest::of_bytes(const Call& call, bool big_endian) {
  ProductRequest request;
  request.take_array(call, big_endian);
  ProductShape& shape = request.shape;
  shape.format = request.format();
  shape.columns = call.whole(2, "columns");
  if (shape.columns == 0 || shape.columns % shape.format.block_elements != 0) {
    throw_range(call.environment(), "columns must be a positive multiple of the " +
                                        std::to_string(shape.format.block_elements) +
                                        " elements of a block, found " + std::to_string(shape.columns));
  }
  // Checked like this, the product of columns and rows cannot overflow.
  const uint64_t n_blocks = request.array_bytes() / shape.format.block_bytes;
  const uint64_t row_blocks = shape.columns / shape.format.block_elements;
  if (n_blocks % row_blocks != 0) {
    throw_range(call.environment(), std::to_string(n_blocks) + " blocks are not a whole number of rows of " +
                                        std::to_string(row_blocks) + " blocks");
  }
  shape.n_rows = n_blocks / row_blocks;
  request.take_bytes(0, request.array_bytes());
  shape.activations = activations(call, 5);
  request.out_argument_ = 4;
  request.take_vectors(call, 3);
  return request;
}

void ProductRequest::take_vectors(const Call& call, size_t index) {
  x_argument_ = index;
  const uint64_t length = floats_argument(call, index, "x").length;
  // Vectors of no numbers cannot be counted: of these only none are accepted.
  if (shape.columns == 0 ? length != 0 : length % shape.columns != 0) {
    throw_range(call.environment(),
                "x has " + std::to_string(length) + " elements, not a whole number of vectors of " +
                    std::to_string(shape.columns),
                path());
  }
  shape.n_vectors = shape.columns == 0 ? 0 : length / shape.columns;
  if (shape.n_vectors == 0) {
    shape.n_rows = 0;
    take_bytes(0, 0);
  }
  if (shape.n_rows > 0 && shape.n_vectors > UINT64_MAX / sizeof(float) / shape.n_rows) {
    throw_range(call.environment(), "the result does not fit in memory", path());
  }
}

Output ProductRequest::find_output(const Call& call) const {
  const auto output = output_argument(call, out_argument_, Out::kFloat32, shape.n_results(), path());
  call.expect(output.has_value(), "out must be given");
  return *output;
}

const float* ProductRequest::vectors(const Call& call) const {
  const TypedArray x = floats_argument(call, x_argument_, "x");
  if (x.length != shape.n_vectors * shape.columns) throw_range(call.environment(), "x changed its length");
  return reinterpret_cast<const float*>(x.data);
}

}  // namespace gguf::binding
