// Statistics as JavaScript asks for them: at once, or as a job.
#include "binding/entry_points.h"
#include "binding/run.h"
#include "binding/statistics_request.h"

namespace gguf::binding {

napi_value statistics_sync(const Call& call) {
  return run_now(call, StatisticsRequest::of_tensor(call), 5);
}

napi_value statistics_async(const Call& call) {
  return run_later(call, StatisticsRequest::of_tensor(call), 5);
}

napi_value statistics_of_blocks_async(const Call& call) {
  return run_later(call, StatisticsRequest::of_bytes(call), 4);
}

}  // namespace gguf::binding
