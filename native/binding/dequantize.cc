// Dequantization as JavaScript asks for it: at once, or as a job.
#include <utility>

#include "binding/decode_request.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/run.h"

namespace gguf::binding {

namespace {

/** On this thread, without the chunks of a ChunkedWork: a call for a single row must cost less than its
 * kernel. */
napi_value decode_now(const Call& call, DecodeRequest request) {
  Environment& environment = call.environment();
  const Output output = request.find_or_make_output(call);
  const BlockSource source = request.locate(call);
  BlockSelection& selection = request.selection;
  if (const Status failure =
          decode_blocks(source, selection, 0, selection.n_blocks, output.data, environment.scratch)) {
    throw_error(environment, *failure, request.path());
  }
  environment.spare_rows = std::move(selection.rows);
  return output.array;
}

}  // namespace

napi_value dequantize_sync(const Call& call) {
  return decode_now(call, DecodeRequest::of_range(call));
}

napi_value dequantize_async(const Call& call) {
  return run_later(call, DecodeRequest::of_range(call), 6);
}

napi_value dequantize_rows_sync(const Call& call) {
  return decode_now(call, DecodeRequest::of_rows(call));
}

napi_value dequantize_rows_async(const Call& call) {
  return run_later(call, DecodeRequest::of_rows(call), 6);
}

napi_value dequantize_blocks_sync(const Call& call) {
  return decode_now(call, DecodeRequest::of_bytes(call, false));
}

napi_value dequantize_blocks_async(const Call& call) {
  return run_later(call, DecodeRequest::of_bytes(call, call.boolean(8, "bigEndian")), 6);
}

}  // namespace gguf::binding
