// The comparison of two tensors as JavaScript asks for it: as a job.
#include <memory>
#include <string>
#include <utility>

#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/job.h"
#include "binding/statistics_request.h"
#include "dequant/totals.h"
#include "work/chunked_comparison.h"

namespace gguf::binding {

namespace {

/** Up to so many numbers the way to another thread and back takes longer than the work. */
constexpr uint64_t kMaxInlineNumbers = uint64_t{32} << 10;

/** One of the two: its blocks, in argument `index` and the next. */
class ComparedRequest : public BlockRequest {
 public:
  /** Elements of a tensor, from `start` to `end`: arguments 4 and 5. */
  static ComparedRequest of_tensor(const Call& call, size_t index) {
    ComparedRequest request;
    const TensorInfo& tensor = request.take_tensor(call, index);
    request.n_numbers_ = request.take_blocks(call, 4, tensor.n_elements) * request.format().block_elements;
    return request;
  }
  static ComparedRequest of_bytes(const Call& call, size_t index, bool big_endian) {
    ComparedRequest request;
    request.take_array(call, big_endian, index);
    const uint64_t n_blocks = request.array_bytes() / request.format().block_bytes;
    request.take_bytes(0, request.array_bytes());
    request.n_numbers_ = n_blocks * request.format().block_elements;
    return request;
  }

  uint64_t n_numbers() const { return n_numbers_; }
  /** For other threads as long as `hold` exists: in place where the memory cannot go away, else as a copy. */
  ComparedBlocks pin(const Call& call, BlockHold* hold) const {
    BlockSource source = locate(call);
    if (!hold_in_place(call, source, hold)) source.data = hold_whole_copy(source, hold);
    return {source, format()};
  }

 private:
  uint64_t n_numbers_ = 0;
};

/** Starts Work, which writes as many numbers as `totals` has. */
template <class Work>
napi_value start(const Call& call, const ComparedRequest& a, const ComparedRequest& b, const Totals& totals,
                 const Comparison& before, Napi::FunctionReference on_progress) {
  ComparisonTask task;
  task.n_numbers = a.n_numbers();
  task.before = before;
  if (b.n_numbers() != task.n_numbers) {
    throw_range(call.environment(), std::to_string(a.n_numbers()) + " numbers cannot be compared with " +
                                        std::to_string(b.n_numbers()));
  }
  JobInput input;
  input.on_progress = std::move(on_progress);
  input.output = totals.new_output(call);
  input.output_bytes = totals.size() * sizeof(double);
  task.a = a.pin(call, &input.hold);
  task.b = b.pin(call, &input.other_hold);
  if (a.path() != nullptr) input.path = *a.path();
  if (b.path() != nullptr) input.other_path = *b.path();
  const bool is_small = b.path() == nullptr && task.n_numbers <= kMaxInlineNumbers;
  input.make_work = [&](void* dst) { return std::make_unique<Work>(task, static_cast<double*>(dst)); };
  return start_job(call, std::move(input), is_small);
}

}  // namespace

napi_value compare_async(const Call& call) {
  const Totals totals(call, 6);
  return start<ChunkedComparison>(call, ComparedRequest::of_tensor(call, 0),
                                  ComparedRequest::of_tensor(call, 2), totals,
                                  totals.read<ComparisonTotals>(call).comparison, progress_argument(call, 7));
}

napi_value compare_blocks_async(const Call& call) {
  const uint32_t big_endian = call.uint32(4, "bigEndian");
  const Totals totals(call, 5);
  return start<ChunkedComparison>(call, ComparedRequest::of_bytes(call, 0, (big_endian & 1) != 0),
                                  ComparedRequest::of_bytes(call, 2, (big_endian & 2) != 0), totals,
                                  totals.read<ComparisonTotals>(call).comparison, {});
}

napi_value compare_bytes_async(const Call& call) {
  const ComparedRequest a = ComparedRequest::of_tensor(call, 0), b = ComparedRequest::of_tensor(call, 2);
  const Totals totals(call, 6);
  if (totals.size() != 1) throw_range(call.environment(), "totals must have one element");
  if (a.format().id != b.format().id) throw_range(call.environment(), "the two tensors have different types");
  return start<ChunkedByteComparison>(call, a, b, totals, {}, progress_argument(call, 7));
}

}  // namespace gguf::binding
