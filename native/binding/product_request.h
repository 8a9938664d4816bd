// What a call asks to be multiplied, as its arguments say.
#pragma once

#include <napi.h>

#include <cstdint>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/outputs.h"
#include "work/chunked_product.h"

namespace gguf::binding {

/** Checked arguments of one call, for use during that call. */
class ProductRequest : public BlockRequest {
 public:
  /** Of file, tensor, columns, x, start, end, out and int8: rows of a tensor. */
  static ProductRequest of_tensor(const Call& call);
  /** Of type, blocks, columns, x, out and int8: all rows of a Uint8Array of blocks. */
  static ProductRequest of_bytes(const Call& call, bool big_endian);

  ProductShape shape;

  Output find_or_make_output(const Call& call) const {
    return BlockRequest::find_or_make_output(call, out_argument_, Out::kFloat32, shape.n_results());
  }
  /** The array for the products, which must be given. */
  Output find_output(const Call& call) const;
  uint64_t output_bytes() const { return shape.n_results() * sizeof(float); }
  bool is_small() const { return shape.n_multiplications() <= kMaxInlineMultiplications; }
  int useful_threads(uint64_t most) const { return useful_product_threads(shape.n_multiplications(), most); }
  ChunkedProduct make_work(const Call& call, const BlockSource& source, int threads, void* y) const {
    return ChunkedProduct(source, shape, vectors(call), threads, static_cast<float*>(y));
  }
  /** Where the vectors are, until JavaScript runs again. */
  const float* vectors(const Call& call) const;

 private:
  /** Up to so many multiplications the way to another thread and back takes longer than the work. */
  static constexpr uint64_t kMaxInlineMultiplications = uint64_t{256} << 10;

  /** Checks x, which has vectors of `columns` numbers, and the size of the result. */
  void take_vectors(const Call& call, size_t index);

  size_t x_argument_ = 0;
  size_t out_argument_ = 0;
};

}  // namespace gguf::binding
