// Statistics as JavaScript asks for them: at once, or as a job.
#include <memory>
#include <utility>

#include "binding/entry_points.h"
#include "binding/job.h"
#include "binding/statistics_request.h"
#include "binding/work_now.h"
#include "work/chunked_statistics.h"

namespace gguf::binding {

namespace {

/** Up to so many numbers the way to another thread and back takes longer than the work. */
constexpr uint64_t kMaxInlineNumbers = uint64_t{64} << 10;

napi_value measure_later(const Call& call, StatisticsRequest request, size_t progress_index) {
  JobInput input;
  input.on_progress = progress_argument(call, progress_index);
  input.output = request.new_output(call);
  input.output_bytes = request.output_bytes();
  const BlockSource source = request.pin(call, &input.hold);
  if (request.path() != nullptr) input.path = *request.path();
  const bool is_small = request.task.n_elements() <= kMaxInlineNumbers;
  input.make_work = [&](void* dst) {
    return std::make_unique<ChunkedStatistics>(source, std::move(request.task), static_cast<double*>(dst));
  };
  return start_job(call, std::move(input), is_small);
}

}  // namespace

napi_value statistics_sync(const Call& call) {
  StatisticsRequest request = StatisticsRequest::of_tensor(call);
  const int threads = useful_statistics_threads(request.task.n_elements(), threads_argument(call, 5));
  const Output output = request.new_output(call);
  const BlockSource source = request.locate(call);
  ChunkedStatistics statistics(source, std::move(request.task), static_cast<double*>(output.data));
  work_now(call, statistics, threads, request.path());
  return output.array;
}

napi_value statistics_async(const Call& call) {
  return measure_later(call, StatisticsRequest::of_tensor(call), 5);
}

napi_value statistics_of_blocks_async(const Call& call) {
  return measure_later(call, StatisticsRequest::of_bytes(call), 4);
}

}  // namespace gguf::binding
