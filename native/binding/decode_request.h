// What a call asks to be decoded, as its arguments say.
#pragma once

#include <napi.h>

#include <cstdint>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/outputs.h"
#include "work/decode_blocks.h"

namespace gguf::binding {

/** Checked arguments of one call, for use during that call. */
class DecodeRequest : public BlockRequest {
 public:
  /** Of file, tensor, dtype, start and end: a range of a tensor's elements. */
  static DecodeRequest of_range(const Call& call);
  /** Of file, tensor, rows, count and dtype: rows of a tensor. */
  static DecodeRequest of_rows(const Call& call);
  /** Of type, blocks, dtype, start and end: a range of the elements of a Uint8Array of blocks. */
  static DecodeRequest of_bytes(const Call& call, bool big_endian);

  BlockSelection selection;

  /** Argument 5; or a new array, but only when the blocks are there. May run JavaScript. */
  Output find_or_make_output(const Call& call) const;
  /**
   * As locate(), for other threads as long as `hold` exists: in place where the memory cannot go away, else
   * as a copy. All rows are copied at once, and the selection is changed to their places in the copy. Of a
   * range only the beginning is copied at first.
   */
  BlockSource pin(const Call& call, BlockHold* hold);

 private:
  DecodeRequest() = default;
  /** Reads start and end from arguments 3 and 4, of `n_elements` elements. */
  void take_range(const Call& call, uint64_t n_elements);
};

}  // namespace gguf::binding
