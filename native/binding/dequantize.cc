// Dequantization as JavaScript asks for it: at once, or as a job.
#include <memory>
#include <utility>

#include "binding/decode_request.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/job.h"
#include "binding/tagged.h"

namespace gguf::binding {

namespace {

constexpr napi_type_tag kJobTag = {0x5e07b81c9d3a4f62, 0xa4c3917e08d25bf6};

constexpr size_t kProgressArgument = 6;

/** Up to this size of output the way to another thread and back takes longer than the work. */
constexpr uint64_t kMaxInlineBytes = uint64_t{64} << 10;

Napi::FunctionReference progress_argument(const Call& call) {
  if (call.is_undefined(kProgressArgument)) return {};
  return Napi::Persistent(call.function(kProgressArgument, "onProgress"));
}

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
  Environment& environment = call.environment();
  JobInput input;
  input.on_progress = progress_argument(call);
  input.output = request.find_or_make_output(call);
  input.source = request.pin(call, &input.hold);
  if (request.path() != nullptr) input.path = *request.path();
  const bool is_in_memory = !input.path.has_value();  // so that reading it never waits for a disk
  const bool is_small = request.selection.dst_bytes() <= kMaxInlineBytes;
  input.selection = std::move(request.selection);
  const auto job = std::make_shared<Job>(environment, std::move(input));

  Napi::Object started = Napi::Object::New(call.env());
  started.Set("promise", job->promise());
  started.Set("job", wrap(call.env(), kJobTag, std::make_unique<std::shared_ptr<Job>>(job), sizeof(Job)));
  if (is_small && is_in_memory) {
    job->decode().work(environment.scratch, [] { return false; });
    job->report();
  }
  environment.scheduler.start(job);
  return started;
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

napi_value cancel_job(const Call& call) {
  auto* const job = unwrap<std::shared_ptr<Job>>(call.env(), kJobTag, call[0]);
  if (job == nullptr) throw_arg_type(call.env(), "job", "a job of this addon");
  call.environment().scheduler.cancel(*job);
  return nullptr;
}

}  // namespace gguf::binding
