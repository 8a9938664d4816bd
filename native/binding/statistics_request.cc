#include "binding/statistics_request.h"

#include <cmath>
#include <cstring>
#include <string>

#include "binding/buffers.h"
#include "binding/environment.h"

namespace gguf::binding {

namespace {

/** After the fields: the range of the histogram. Then come the counts of its bins, below and above. */
constexpr size_t kLow = ChunkedStatistics::kResultFields, kHigh = kLow + 1, kCounts = kHigh + 1;

}  // namespace

Totals::Totals(const Call& call, size_t index, size_t n_fields, bool or_more) {
  TypedArray array;
  if (!get_typed_array(call.env(), call[index], &array) || array.type != napi_float64_array) {
    throw_arg_type(call.environment(), "totals", "an instance of Float64Array");
  }
  if (or_more ? array.length < n_fields : array.length != n_fields) {
    throw_range(call.environment(), "totals has " + std::to_string(array.length) + " elements");
  }
  constexpr size_t kMaxLength = kCounts + kMaxBins + 2;
  if (array.length > kMaxLength) throw_range(call.environment(), "totals is too long");
  fields_.resize(array.length);
  std::memcpy(fields_.data(), array.data, array.length * sizeof(double));
}

uint64_t Totals::count(const Call& call, size_t field) const {
  constexpr double kMaxExact = 9007199254740992;
  const double number = fields_[field];
  if (!(number >= 0 && number <= kMaxExact && std::floor(number) == number)) {
    throw_range(call.environment(), "totals has a count that is not a whole number");
  }
  return static_cast<uint64_t>(number);
}

Output Totals::new_output(const Call& call) const {
  Output output;
  output.array = new_typed_array(call.environment(), napi_float64_array, fields_.size(), &output.data);
  return output;
}

StatisticsRequest::StatisticsRequest(const Call& call, size_t totals_argument)
    : totals_(call, totals_argument, ChunkedStatistics::kFiniteFields, true) {
  take_totals(call);
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

void StatisticsRequest::take_totals(const Call& call) {
  Statistics& before = task.before;
  before.count = totals_.count(call, 0);
  before.nan = totals_.count(call, 1);
  before.positive_infinity = totals_.count(call, 2);
  before.negative_infinity = totals_.count(call, 3);
  if (before.nan + before.positive_infinity + before.negative_infinity > before.count) {
    throw_range(call.environment(), "totals has more numbers that are not finite than numbers");
  }
  if (totals_.size() == ChunkedStatistics::kFiniteFields) {
    task.measure = Measure::kFinite;
    return;
  }
  if (totals_.size() < ChunkedStatistics::kResultFields)
    throw_range(call.environment(), "totals lacks fields");
  before.zeros = totals_.count(call, 4);
  before.min = totals_.number(5);
  before.max = totals_.number(6);
  before.mean = totals_.number(7);
  before.m2 = totals_.number(8);
  if (totals_.size() == ChunkedStatistics::kResultFields) return;
  constexpr size_t kLeastLength = kCounts + 1 + 2;
  if (totals_.size() < kLeastLength) throw_range(call.environment(), "totals has no bins");
  const double low = totals_.number(kLow), high = totals_.number(kHigh);
  if (!(low <= high) || !std::isfinite(high - low)) {
    throw_range(call.environment(),
                "the range of the histogram must be two finite numbers, the lower one first");
  }
  task.bins = {low, high, static_cast<uint32_t>(totals_.size() - kCounts - 2)};
  for (size_t i = kCounts; i < totals_.size(); ++i) task.counts_before.push_back(totals_.count(call, i));
}

BlockSource StatisticsRequest::pin(const Call& call, BlockHold* hold) const {
  BlockSource source = locate(call);
  if (!hold_in_place(call, source, hold)) source.data = hold_copy(call, source, hold);
  return source;
}

}  // namespace gguf::binding
