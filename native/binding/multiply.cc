// Products as JavaScript asks for them: at once, or as a job.
#include <memory>
#include <utility>

#include "binding/entry_points.h"
#include "binding/job.h"
#include "binding/product_request.h"
#include "binding/work_now.h"
#include "machine/thread_slots.h"
#include "work/chunked_product.h"

namespace gguf::binding {

namespace {

/** Up to so many multiplications the way to another thread and back takes longer than the work. */
constexpr uint64_t kMaxInlineMultiplications = uint64_t{256} << 10;

napi_value multiply_now(const Call& call, const ProductRequest& request, uint64_t most_threads) {
  const Output output = request.find_or_make_output(call);
  const BlockSource source = request.locate(call);
  const int threads = useful_threads(request.shape, most_threads);
  ChunkedProduct product(source, request.shape, request.vectors(call), threads,
                         static_cast<float*>(output.data));
  work_now(call, product, threads, request.path());
  return output.array;
}

napi_value multiply_later(const Call& call, const ProductRequest& request,
                          Napi::FunctionReference on_progress) {
  JobInput input;
  input.on_progress = std::move(on_progress);
  input.output = request.find_or_make_output(call);
  input.output_bytes = request.shape.n_results() * sizeof(float);
  const BlockSource source = request.pin(call, &input.hold);
  if (request.path() != nullptr) input.path = *request.path();
  const bool is_small = request.shape.n_multiplications() <= kMaxInlineMultiplications;
  const float* const x = request.vectors(call);
  input.make_work = [&](void* dst) {
    return std::make_unique<ChunkedProduct>(source, request.shape, x, ThreadSlots::of_process().limit(),
                                            static_cast<float*>(dst));
  };
  return start_job(call, std::move(input), is_small);
}

}  // namespace

napi_value multiply_sync(const Call& call) {
  return multiply_now(call, ProductRequest::of_tensor(call), threads_argument(call, 6));
}

napi_value multiply_async(const Call& call) {
  return multiply_later(call, ProductRequest::of_tensor(call), progress_argument(call, 6));
}

napi_value multiply_blocks_sync(const Call& call) {
  return multiply_now(call, ProductRequest::of_bytes(call, false), threads_argument(call, 5));
}

napi_value multiply_blocks_async(const Call& call) {
  const bool big_endian = call.boolean(7, "bigEndian");
  return multiply_later(call, ProductRequest::of_bytes(call, big_endian), progress_argument(call, 5));
}

}  // namespace gguf::binding
