// Dequantization as JavaScript asks for it: at once, or as a job.
#include <memory>
#include <utility>

#include "binding/decode_request.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/job.h"
#include "work/chunked_decode.h"

namespace gguf::binding {

namespace {

/** Up to this size of output the way to another thread and back takes longer than the work. */
constexpr uint64_t kMaxInlineBytes = uint64_t{64} << 10;

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

/** Starts a job; returns { job, promise }. */
napi_value decode_later(const Call& call, DecodeRequest request) {
  JobInput input;
  input.on_progress = progress_argument(call, 6);
  input.output = request.find_or_make_output(call);
  input.output_bytes = request.selection.dst_bytes();
  const BlockSource source = request.pin(call, &input.hold);
  if (request.path() != nullptr) input.path = *request.path();
  const bool is_small = request.selection.dst_bytes() <= kMaxInlineBytes;
  input.make_work = [&](void* dst) {
    return std::make_unique<ChunkedDecode>(source, std::move(request.selection), dst);
  };
  return start_job(call, std::move(input), is_small);
}

}  // namespace

napi_value dequantize_sync(const Call& call) {
  return decode_now(call, DecodeRequest::of_range(call));
}

napi_value dequantize_async(const Call& call) {
  return decode_later(call, DecodeRequest::of_range(call));
}

napi_value dequantize_rows_sync(const Call& call) {
  return decode_now(call, DecodeRequest::of_rows(call));
}

napi_value dequantize_rows_async(const Call& call) {
  return decode_later(call, DecodeRequest::of_rows(call));
}

napi_value dequantize_blocks_sync(const Call& call) {
  return decode_now(call, DecodeRequest::of_bytes(call, false));
}

napi_value dequantize_blocks_async(const Call& call) {
  return decode_later(call, DecodeRequest::of_bytes(call, call.boolean(7, "bigEndian")));
}

}  // namespace gguf::binding
