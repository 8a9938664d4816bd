// Results in memory of ours that synchronous calls handed to JavaScript, and when that memory may be used
// again.
//
// Node tells that the memory of an external buffer is out of use only when the event loop turns, so in a loop
// of synchronous calls memory would pile up. Where nothing has moved memory from one ArrayBuffer to another,
// the death of the object is as good a sign, and that can be asked for at any time. Where memory may have
// been moved, only Node's word counts, and what is lent is bounded instead: past that, results are made in
// ordinary memory until the event loop has had its turn.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "binding/buffers.h"

namespace gguf::binding {

/** Of one environment; on its thread only. */
class LentResults {
 public:
  explicit LentResults(napi_env env);
  ~LentResults();
  LentResults(const LentResults&) = delete;
  LentResults& operator=(const LentResults&) = delete;

  /** Takes back what is known to be out of use. Then, whether `n_bytes` more may be lent. */
  bool has_room(uint64_t n_bytes);
  /** `buffer` lies in memory that `hold` keeps. */
  void lend(napi_value buffer, std::shared_ptr<BufferHold> hold);

 private:
  struct Loan {
    napi_ref buffer;  // weak
    std::shared_ptr<BufferHold> hold;
    uint64_t n_bytes;
  };

  /** Whether the loan is over. */
  bool is_over(const Loan& loan);
  /** Whether JavaScript may have moved memory from one ArrayBuffer to another by now. */
  bool memory_can_move();

  napi_env env_;
  bool memory_can_move_;
  Napi::Reference<Napi::Array> loaded_modules_;  // Node's own, in the order in which they were loaded
  uint32_t n_known_modules_ = 0;
  std::vector<Loan> loans_;
  uint64_t n_bytes_ = 0;
};

}  // namespace gguf::binding
