#include "binding/statistics_request.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "binding/buffers.h"
#include "binding/environment.h"

namespace gguf::binding {

Totals::Totals(const Call& call, size_t index) {
  const TypedArray array = array_argument(call, index, "totals", napi_float64_array);
  // What is longer is refused by whoever reads it; the first numbers too many are enough for that.
  fields_.resize(std::min(array.length, StatisticsTotals::kMaxFields + 1));
  if (!fields_.empty()) std::memcpy(fields_.data(), array.data, fields_.size() * sizeof(double));
}

Output Totals::new_output(const Call& call) const {
  Output output;
  output.array = new_typed_array(call.environment(), napi_float64_array, fields_.size(), &output.data);
  return output;
}

StatisticsRequest::StatisticsRequest(const Call& call, size_t totals_argument)
    : totals_(call, totals_argument) {
  StatisticsTotals totals = totals_.read<StatisticsTotals>(call);
  task.measure = totals.measure;
  task.before = totals.statistics;
  task.bins = totals.bins;
  task.counts_before = std::move(totals.counts);
}

StatisticsRequest StatisticsRequest::of_tensor(const Call& call) {
  StatisticsRequest request(call, 4);
  const TensorInfo& tensor = request.take_tensor(call);
  request.task.format = request.format();
  request.task.n_blocks = request.take_blocks(call, 2, tensor.n_elements);
  return request;
}

StatisticsRequest StatisticsRequest::of_bytes(const Call& call) {
  StatisticsRequest request(call, 3);
  request.take_array(call, call.boolean(2, "bigEndian"));
  request.task.format = request.format();
  request.task.n_blocks = request.array_bytes() / request.format().block_bytes;
  request.take_bytes(0, request.array_bytes());
  return request;
}

}  // namespace gguf::binding
