// What a call asks to be turned into blocks, as its arguments say.
#pragma once

#include <napi.h>

#include <cstdint>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/outputs.h"
#include "work/chunked_quantization.h"

namespace gguf::binding {

/** Checked arguments of one call, for use during that call: type, numbers, columns, importance and out, and
 * whether to search for the best blocks, at `best_index`. */
class QuantizationRequest : public BlockRequest {
 public:
  QuantizationRequest(const Call& call, size_t best_index);

  Output find_or_make_output(const Call& call) const;
  uint64_t output_bytes() const { return task_.n_blocks * task_.format.block_bytes; }
  /** Whether it is no more than what the way to another thread and back takes. */
  bool is_small() const { return useful_threads(UINT64_MAX) <= 2; }
  int useful_threads(uint64_t most) const { return useful_quantization_threads(task_, most); }
  ChunkedQuantization make_work(const Call&, const BlockSource& source, int threads, void* dst) const {
    return ChunkedQuantization(source, task_, threads, static_cast<uint8_t*>(dst));
  }

 private:
  QuantizationTask task_;
};

}  // namespace gguf::binding
