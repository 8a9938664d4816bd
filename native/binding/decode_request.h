// What a call asks to be decoded, as its arguments say.
#pragma once

#include <napi.h>

#include <cstdint>
#include <utility>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/outputs.h"
#include "work/chunked_decode.h"

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

  Output find_or_make_output(const Call& call) const {
    return BlockRequest::find_or_make_output(call, 5, selection.out, selection.n_elements());
  }
  uint64_t output_bytes() const { return selection.dst_bytes(); }
  bool is_small() const { return selection.dst_bytes() <= kMaxInlineBytes; }
  /** As BlockRequest::pin, but all rows are copied at once, and the selection is changed to their places in
   * the copy. */
  BlockSource pin(const Call& call, BlockHold* hold);
  ChunkedDecode make_work(const Call&, const BlockSource& source, int, void* dst) {
    return ChunkedDecode(source, std::move(selection), dst);
  }

 private:
  /** Up to this size of output the way to another thread and back takes longer than the work. */
  static constexpr uint64_t kMaxInlineBytes = uint64_t{64} << 10;

  DecodeRequest() = default;
  /** Reads start and end from arguments 3 and 4, of `n_elements` elements. */
  void take_range(const Call& call, uint64_t n_elements);
};

}  // namespace gguf::binding
