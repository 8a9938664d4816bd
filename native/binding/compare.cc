// The comparison of two tensors as JavaScript asks for it: at once, or as a job.
#include <string>
#include <utility>

#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/run.h"
#include "binding/statistics_request.h"
#include "dequant/totals.h"
#include "work/chunked_comparison.h"

namespace gguf::binding {

namespace {

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

 private:
  uint64_t n_numbers_ = 0;
};

/** Both of them. Work writes as many numbers as `totals` has. */
template <class Work>
class ComparisonRequest {
 public:
  ComparisonRequest(const Call& call, ComparedRequest a, ComparedRequest b, Totals totals, Comparison before)
      : a_(std::move(a)), b_(std::move(b)), totals_(std::move(totals)), before_(before) {
    if (a_.n_numbers() == b_.n_numbers()) return;
    throw_range(call.environment(), std::to_string(a_.n_numbers()) + " numbers cannot be compared with " +
                                        std::to_string(b_.n_numbers()));
  }

  Output find_or_make_output(const Call& call) const { return totals_.new_output(call); }
  uint64_t output_bytes() const { return totals_.n_bytes(); }
  bool is_small() const { return a_.n_numbers() <= kMaxInlineNumbers; }
  int useful_threads(uint64_t most) const { return useful_statistics_threads(a_.n_numbers(), most); }
  const std::string* path() const { return a_.path(); }
  ComparisonTask locate(const Call& call) const {
    return {{a_.locate(call), a_.format()}, {b_.locate(call), b_.format()}, a_.n_numbers(), before_};
  }
  ComparisonTask pin(const Call& call, BlockHold (&holds)[2]) const {
    return {{a_.pin(call, &holds[0]), a_.format()},
            {b_.pin(call, &holds[1]), b_.format()},
            a_.n_numbers(),
            before_};
  }
  Work make_work(const Call&, const ComparisonTask& task, int, void* result) const {
    return Work(task, static_cast<double*>(result));
  }

 private:
  /** Up to so many numbers the way to another thread and back takes longer than the work. */
  static constexpr uint64_t kMaxInlineNumbers = uint64_t{32} << 10;

  const ComparedRequest a_, b_;
  const Totals totals_;
  const Comparison before_;
};

/** The values of both, with what is found joined to the totals of argument `index`. */
ComparisonRequest<ChunkedComparison> values(const Call& call, ComparedRequest a, ComparedRequest b,
                                            size_t index) {
  Totals totals(call, index);
  const Comparison before = totals.read<ComparisonTotals>(call).comparison;
  return {call, std::move(a), std::move(b), std::move(totals), before};
}

ComparisonRequest<ChunkedComparison> values_of_tensors(const Call& call) {
  return values(call, ComparedRequest::of_tensor(call, 0), ComparedRequest::of_tensor(call, 2), 6);
}

ComparisonRequest<ChunkedByteComparison> bytes_of_tensors(const Call& call) {
  const ComparedRequest a = ComparedRequest::of_tensor(call, 0), b = ComparedRequest::of_tensor(call, 2);
  Totals totals(call, 6);
  if (totals.size() != 1) throw_range(call.environment(), "totals must have one element");
  if (a.format().id != b.format().id) throw_range(call.environment(), "the two tensors have different types");
  return {call, a, b, std::move(totals), {}};
}

}  // namespace

napi_value compare_sync(const Call& call) {
  return run_now(call, values_of_tensors(call), 7);
}

napi_value compare_async(const Call& call) {
  return run_later(call, values_of_tensors(call), 7);
}

napi_value compare_blocks_async(const Call& call) {
  const uint32_t big_endian = call.uint32(4, "bigEndian");
  return run_later(call,
                   values(call, ComparedRequest::of_bytes(call, 0, (big_endian & 1) != 0),
                          ComparedRequest::of_bytes(call, 2, (big_endian & 2) != 0), 5),
                   6);
}

napi_value compare_bytes_sync(const Call& call) {
  return run_now(call, bytes_of_tensors(call), 7);
}

napi_value compare_bytes_async(const Call& call) {
  return run_later(call, bytes_of_tensors(call), 7);
}

}  // namespace gguf::binding
