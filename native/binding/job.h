// One asynchronous dequantization, product, statistics or comparison, as its environment's thread sees it.
#pragma once

#include <napi.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "binding/block_request.h"
#include "binding/call.h"
#include "binding/deferred.h"
#include "binding/outputs.h"
#include "machine/pinned_memory.h"
#include "work/chunked_work.h"

namespace gguf::binding {

/** What a job starts from. */
struct JobInput {
  BlockHold holds[2];  // of the source, and of a second one if there is one
  Output output;
  uint64_t output_bytes = 0;
  /** Makes the work, which writes to `dst`. Called before JavaScript runs again. */
  std::function<std::unique_ptr<ChunkedWork>(void* dst)> make_work;
  Napi::FunctionReference on_progress;  // may be empty
};

/**
 * Owns what the threads of the pool read and write until none of them does any more, and then settles its
 * promise. Everything but work() belongs to the environment's thread.
 */
class Job {
 public:
  Job(Environment& environment, JobInput input);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /** Makes the promise; once. Runs JavaScript (async_hooks). */
  napi_value promise() { return deferred_.promise(environment_); }

  ChunkedWork& work() { return *work_; }
  const ChunkedWork& work() const { return *work_; }
  /** Whether a source is still being copied to where threads can read it. */
  bool copies_source() const { return holds_[0].is_copying() || holds_[1].is_copying(); }
  /**
   * Makes ready what threads need for the next chunks: copies the next part of the source, unless they have
   * enough to do, and takes memory for a result that has to be copied in the end, unless other jobs have much
   * of it. That only now, so that jobs which wait for their turn have none: one after the other, they use the
   * same. False if it failed: then no work is left.
   */
  bool feed() noexcept;
  /** Whether there is work for one more task; after feed(). One task has all threads that may work. */
  bool has_work() const {
    const bool may_work = in_flight == 0 || work_->most_threads() == INT_MAX;
    return work_->unclaimed() > in_flight && may_work && (!is_staged_ || staging_ != nullptr);
  }
  /** How many threads have something to do. */
  uint64_t useful_threads() const {
    return std::min(work_->unclaimed(), static_cast<uint64_t>(work_->most_threads()));
  }
  bool reports_progress() const { return !on_progress_.IsEmpty(); }
  bool is_settled() const { return settled_; }
  // For the scheduler:
  uint64_t in_flight = 0;       // tasks
  uint64_t claimed_before = 0;  // chunks, at the end of its last turn

  /** Makes the promise reject with undefined once no thread works on it any more. */
  void cancel();
  /** The same, with what C++ or JavaScript has thrown. */
  void fail(std::exception_ptr exception);
  /** Calls onProgress if there was progress. What the callback throws, the promise will reject with. */
  void report();
  /**
   * Call when no task is in flight and no chunk is left: settles the promise, which runs JavaScript, and
   * returns true. Or, where the result has to be copied to an array that could have gone away meanwhile,
   * copies a part of it and returns false: call again, after the event loop has had a turn.
   */
  bool finish();

 private:
  /** Tells the threads how much of the sources has been copied. */
  void announce_copied_bytes();
  /** Where the elements of the output are now. False where they are no longer there. */
  bool find_output(uint8_t** data);
  /** Copies the parts of the sources that are due; false if they are no longer there. */
  bool feed_source();
  /** Takes memory for the result if it is due; false if there is none. */
  bool feed_staging();
  /** Returns whether that was the last part. */
  bool copy_part(uint8_t* to);
  void resolve();
  void reject(napi_value reason);
  void reject(const Error& error);
  void reject(std::exception_ptr exception);
  void release();

  Environment& environment_;
  BlockHold holds_[2];
  Napi::ObjectReference output_;  // strong: memory that is shared stays as long as its array
  bool output_given_;
  Napi::FunctionReference on_progress_;
  std::shared_ptr<PinnedMemory> dst_hold_;  // keeps an output that lies in pinned memory
  bool is_staged_ = false;                  // the result has to be copied in the end,
  std::shared_ptr<PinnedMemory> staging_;   // from here
  uint64_t output_bytes_;
  std::unique_ptr<ChunkedWork> work_;
  std::exception_ptr exception_;
  Deferred deferred_;
  uint64_t reported_elements_ = 0;
  uint64_t copied_bytes_ = 0;
  bool cancelled_ = false;
  bool settled_ = false;
};

// start_job.cc

/** The callback of argument `index`; empty where it is undefined. */
Napi::FunctionReference progress_argument(const Call& call, size_t index);

/** Starts a job; returns { job, promise }. Work that `is_small` and in memory is done at once. */
napi_value start_job(const Call& call, JobInput input, bool is_small);

}  // namespace gguf::binding
