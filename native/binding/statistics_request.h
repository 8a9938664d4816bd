// What a call wants statistics of, as its arguments say.
#pragma once

#include <napi.h>

#include <cstdint>
#include <vector>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/outputs.h"
#include "decode/chunked_statistics.h"

namespace gguf::binding {

/** Totals that results are added to: copied from the Float64Array of an argument. */
class Totals {
 public:
  /** With `n_fields` numbers or, where `or_more`, more. Argument `index`. */
  Totals(const Call& call, size_t index, size_t n_fields, bool or_more = false);

  size_t size() const { return fields_.size(); }
  double number(size_t field) const { return fields_[field]; }
  /** Throws ERR_GGUF_RANGE for anything but a whole number from 0 to 2^53. */
  uint64_t count(const Call& call, size_t field) const;
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

  Output new_output(const Call& call) const { return totals_.new_output(call); }
  size_t output_bytes() const { return totals_.size() * sizeof(double); }
  /** As locate(), for other threads as long as `hold` exists: in place where the memory cannot go away, else
   * as a copy, of which only the beginning is there at first. */
  BlockSource pin(const Call& call, BlockHold* hold) const;

 private:
  StatisticsRequest(const Call& call, size_t totals_argument);
  void take_totals(const Call& call);

  Totals totals_;
};

}  // namespace gguf::binding
