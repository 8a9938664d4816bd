// Large results that synchronous calls returned in memory of the pool, and when that memory can be used
// again.
//
// Node reports that an external buffer was collected only when the event loop turns, so in a loop of
// synchronous calls memory would pile up. Where nothing has moved memory from one ArrayBuffer to another, it
// is enough that the object was collected, and that can be asked at any time. Where memory may have been
// moved, only Node's report counts, and the memory in use is bounded instead: beyond the bound, results are
// made in ordinary memory until the event loop has had a turn.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "binding/buffers.h"

namespace gguf::binding {

/** Of one environment; on its thread only. */
class ExternalResults {
 public:
  explicit ExternalResults(napi_env env);
  ~ExternalResults();
  ExternalResults(const ExternalResults&) = delete;
  ExternalResults& operator=(const ExternalResults&) = delete;

  /** Takes back memory that is known to be out of use. Then, whether there is room for `n_bytes` more. May
     run JavaScript. */
  bool has_room(uint64_t n_bytes);
  /** `buffer` lies in memory that `hold` keeps. */
  void add(napi_value buffer, std::shared_ptr<BufferHold> hold);

 private:
  struct Result {
    napi_ref buffer;  // weak
    std::shared_ptr<BufferHold> hold;
    uint64_t n_bytes;
  };

  /** Looks whether something that can move memory from one ArrayBuffer to another was loaded by now. Runs
     JavaScript: what it looks at may have getters. */
  void update_memory_can_move();
  /** Frees the memory of a result if it is out of use; whether it is. */
  bool free_if_unused(const Result& result) const;

  napi_env env_;
  bool memory_can_move_;
  Napi::Reference<Napi::Array> loaded_modules_;  // Node's own, in the order in which they were loaded
  uint32_t n_known_modules_ = 0;
  std::vector<Result> results_;
  uint64_t n_bytes_ = 0;
};

}  // namespace gguf::binding
