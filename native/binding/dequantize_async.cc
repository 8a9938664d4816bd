#include "binding/dequantize_async.h"

#include <memory>
#include <utility>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/job.h"
#include "binding/tagged.h"

namespace gguf::binding {

namespace {

constexpr napi_type_tag kJobTag = {0x5e07b81c9d3a4f62, 0xa4c3917e08d25bf6};

/** Up to this size of output the way to another thread and back takes longer than the work. */
constexpr uint64_t kMaxInlineBytes = uint64_t{64} << 10;

Napi::FunctionReference progress_argument(const Call& call, size_t index) {
  if (call.is_undefined(index)) return {};
  return Napi::Persistent(call.function(index, "onProgress"));
}

/** Starts a job; returns { job, promise }. `in_memory`: the source is, so that reading it never waits for a
 * disk. */
napi_value start(const Call& call, JobInput input, bool in_memory) {
  Environment& environment = call.environment();
  const bool is_small = input.range.dst_bytes() <= kMaxInlineBytes;
  auto job = std::make_shared<Job>(environment, std::move(input));
  Napi::Object started = Napi::Object::New(call.env());
  started.Set("promise", job->promise());
  started.Set("job", wrap(call.env(), kJobTag, std::make_unique<std::shared_ptr<Job>>(job), sizeof(Job)));
  if (is_small && in_memory) {
    job->decode().work(environment.scratch, [] { return false; });
    job->report();
  }
  environment.scheduler.start(job);
  return started;
}

}  // namespace

napi_value dequantize_async(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  Environment& environment = call.environment();
  const TensorInfo& tensor = file.tensor(call, 1);
  const Format& format = file.format_of(environment, tensor);
  JobInput input;
  input.range = range_argument(call, 2, format, tensor.n_elements, file.path());
  if (file.path() != nullptr) input.path = *file.path();
  input.on_progress = progress_argument(call, 6);
  if (!output_argument(call, 5, input.range.out, input.range.n_elements(), file.path(), &input.output)) {
    file.blocks(environment, tensor, input.range.skipped_bytes(), input.range.src_bytes());
    input.output = new_output(environment, input.range.out, input.range.n_elements());
  }
  input.source = file.pinned_blocks(environment, tensor, input.range.skipped_bytes(), input.range.src_bytes(),
                                    &input.hold);
  return start(call, std::move(input), file.path() == nullptr);
}

napi_value dequantize_rows_async(const Call& call) {
  FileHandle& file = FileHandle::of(call, 0);
  Environment& environment = call.environment();
  const TensorInfo& tensor = file.tensor(call, 1);
  const Format& format = file.format_of(environment, tensor);
  const RowSelection selection = rows_arguments(call, 2, tensor, format, file.path());
  const BlockRange& row = selection.row;
  const uint64_t n_elements = selection.n_elements();
  JobInput input;
  input.order = {*selection.rows, row.n_blocks};
  input.range = {&format, row.out, 0, input.order.rows.size() * row.n_blocks};
  if (file.path() != nullptr) input.path = *file.path();
  input.on_progress = progress_argument(call, 6);
  if (!output_argument(call, 5, row.out, n_elements, file.path(), &input.output)) {
    file.blocks(environment, tensor, 0, selection.n_bytes);
    input.output = new_output(environment, row.out, n_elements);
  }
  input.source = file.pinned_rows(environment, tensor, selection.n_bytes, row.src_bytes(), &input.order.rows,
                                  &input.hold);
  return start(call, std::move(input), file.path() == nullptr);
}

napi_value dequantize_blocks_async(const Call& call) {
  BlockBytes blocks = blocks_argument(call);
  JobInput input;
  input.range = range_argument(call, 2, *blocks.format, blocks.n_elements, nullptr);
  input.on_progress = progress_argument(call, 6);
  if (!output_argument(call, 5, input.range.out, input.range.n_elements(), nullptr, &input.output)) {
    input.output = new_output(call.environment(), input.range.out, input.range.n_elements());
    blocks = same_blocks(call, blocks);
  }
  input.source.data = pin_bytes(call.env(), call[1], blocks.data + input.range.skipped_bytes(),
                                input.range.src_bytes(), &input.hold);
  input.source.big_endian = call.boolean(7, "bigEndian");
  return start(call, std::move(input), true);
}

napi_value cancel_job(const Call& call) {
  auto* const job = unwrap<std::shared_ptr<Job>>(call.env(), kJobTag, call[0]);
  if (job == nullptr) throw_arg_type(call.env(), "job", "a job of this addon");
  call.environment().scheduler.cancel(*job);
  return nullptr;
}

}  // namespace gguf::binding
