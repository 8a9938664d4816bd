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
  /** Of file, tensor, x, start, end, out and, as the eighth argument, int8: rows of a tensor. */
  static ProductRequest of_tensor(const Call& call);
  /** Of type, blocks, columns, x, out and, as the seventh argument, int8: all rows of a Uint8Array of blocks.
   */
  static ProductRequest of_bytes(const Call& call, bool big_endian);

  ProductShape shape;

  /** The argument `out`; or a new array, but only when the blocks are there. May run JavaScript. */
  Output find_or_make_output(const Call& call) const;
  /** Where the vectors are, until JavaScript runs again. */
  const float* vectors(const Call& call) const;
  /** As locate(), for other threads as long as `hold` exists: in place where the memory cannot go away, else
   * as a copy, of which only the beginning is there at first. */
  BlockSource pin(const Call& call, BlockHold* hold) const;

 private:
  /** Checks x, which has vectors of `columns` numbers, and the size of the result. */
  void take_vectors(const Call& call, size_t index);

  size_t x_argument_ = 0;
  size_t out_argument_ = 0;
};

}  // namespace gguf::binding
