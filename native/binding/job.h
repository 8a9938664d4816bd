// One asynchronous dequantization, as its environment's thread sees it.
#pragma once

#include <napi.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "binding/chunked_decode.h"
#include "binding/deferred.h"
#include "binding/dequantize.h"
#include "binding/file_handle.h"

namespace gguf::binding {

/** What a job starts from. */
struct JobInput {
  BlockRange range;
  BlockSource source;  // starts at the first block of the range, or
  BlockOrder order;    // at the first row
  BlockHold hold;
  Output output;
  Napi::FunctionReference on_progress;  // empty where nobody asked
  std::optional<std::string> path;      // for errors
};

/**
 * Owns what the threads of the pool read and write until none of them does any more, and then settles its
 * promise. All of it but decode() belongs to the environment's thread.
 */
class Job {
 public:
  Job(Environment& environment, JobInput input);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /** Makes the promise; once. */
  napi_value promise() { return deferred_.promise(environment_); }

  ChunkedDecode& decode() { return *decode_; }
  /** Whether the source is still being copied to where threads can read it. */
  bool copies_source() const { return hold_.copy != nullptr && !hold_.copy->is_complete(); }
  /**
   * Copies the next part of the source, unless the threads have enough to do. False if that failed, upon
   * which no work is left.
   */
  bool feed();
  bool reports_progress() const { return !on_progress_.IsEmpty(); }
  bool is_settled() const { return settled_; }
  /** Tasks that the scheduler has in flight for it. */
  uint64_t in_flight = 0;

  /** Makes the promise reject with undefined once no thread works on it any more. */
  void cancel();
  /** Tells of progress since the last time. What the callback throws, the promise will reject with. */
  void report();
  /**
   * Call when no task is in flight and no chunk is left: settles the promise and returns true. Or, where the
   * result has to be copied to an array that could have gone away meanwhile, copies a part of it and returns
   * false: call again, after the event loop has had a turn.
   */
  bool finish();

 private:
  /** Where the elements of the output are now. False where they are no longer there. */
  bool find_output(uint8_t** data);
  /** Returns whether that was the last part. */
  bool copy_part(uint8_t* to);
  void resolve();
  void reject(napi_value reason);
  void reject(const Error& error);
  void reject(std::exception_ptr exception);
  void let_go();

  Environment& environment_;
  const BlockRange range_;
  BlockHold hold_;
  std::optional<std::string> path_;
  Napi::ObjectReference output_;  // strong: memory that is shared stays as long as its array
  bool output_given_;
  Napi::FunctionReference on_progress_;
  std::shared_ptr<PinnedMemory> dst_hold_;  // keeps an output that lies in memory of ours
  std::shared_ptr<PinnedMemory> detour_;    // where the result is made if it has to be copied in the end
  std::optional<ChunkedDecode> decode_;
  std::exception_ptr callback_error_;
  Deferred deferred_;
  uint64_t reported_elements_ = 0;
  uint64_t copied_bytes_ = 0;
  bool cancelled_ = false;
  bool settled_ = false;
};

}  // namespace gguf::binding
