// What a call wants statistics of, as its arguments say.
#pragma once

#include <napi.h>

#include <utility>
#include <vector>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/errors.h"
#include "binding/outputs.h"
#include "dequant/totals.h"
#include "work/chunked_statistics.h"

namespace gguf::binding {

/** Totals that results are added to: copied from the Float64Array of an argument. */
class Totals {
 public:
  /** Argument `index`. */
  Totals(const Call& call, size_t index);

  size_t size() const { return fields_.size(); }
  uint64_t n_bytes() const { return fields_.size() * sizeof(double); }
  /** As StatisticsTotals or ComparisonTotals. Throws ERR_GGUF_RANGE for what cannot be such. */
  template <class T>
  T read(const Call& call) const {
    Result<T> totals = T::read(fields_.data(), fields_.size());
    if (!totals.ok()) throw_error(call.environment(), totals.error());
    return std::move(totals.value());
  }
  /** A new array of the same length: may not run JavaScript, since it is small. */
  Output new_output(const Call& call) const;

 private:
  std::vector<double> fields_;
};

/** Checked arguments of one call, for use during that call. */
class StatisticsRequest : public BlockRequest {
 public:
  /** Of file, tensor, start, end and totals. */
  static StatisticsRequest of_tensor(const Call& call);
  /** Of type, blocks, whether they are big-endian, and totals. */
  static StatisticsRequest of_bytes(const Call& call);

  StatisticsTask task;

  Output find_or_make_output(const Call& call) const { return totals_.new_output(call); }
  uint64_t output_bytes() const { return totals_.n_bytes(); }
  bool is_small() const { return task.n_elements() <= kMaxInlineNumbers; }
  int useful_threads(uint64_t most) const { return useful_statistics_threads(task.n_elements(), most); }
  ChunkedStatistics make_work(const Call&, const BlockSource& source, int, void* result) {
    return ChunkedStatistics(source, std::move(task), static_cast<double*>(result));
  }

 private:
  /** Up to so many numbers the way to another thread and back takes longer than the work. */
  static constexpr uint64_t kMaxInlineNumbers = uint64_t{64} << 10;

  StatisticsRequest(const Call& call, size_t totals_argument);

  Totals totals_;
};

}  // namespace gguf::binding
