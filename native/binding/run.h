// The two ways in which JavaScript asks for work: to be done when the call returns, or by other threads, as a
// job.
//
// A Request is the checked arguments of one call: a BlockRequest that also has
//   find_or_make_output(call)                 the array for the result; may run JavaScript
//   output_bytes()                            how long that is
//   is_small()                                whether the way to another thread takes longer than the work
//   useful_threads(most)                      how many of `most` threads help: for run_now
//   make_work(call, source, threads, output)  the ChunkedWork on what pin() or locate() found
#pragma once

#include <napi.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <utility>

#include "binding/call.h"
#include "binding/job.h"
#include "binding/work_now.h"
#include "machine/thread_slots.h"

namespace gguf::binding {

/** Does it on this thread and on up to so many others as argument `threads_index` says; returns the output.
 */
template <class Request>
napi_value run_now(const Call& call, Request request, size_t threads_index) {
  const int threads = request.useful_threads(threads_argument(call, threads_index));
  const Output output = request.find_or_make_output(call);
  auto work = request.make_work(call, request.locate(call), threads, output.data);
  work_now(call, work, threads, request.path());
  return output.array;
}

/** Starts a job, whose progress argument `progress_index` is told, on up to so many threads at a time as the
 * next argument says; returns { job, promise }. */
template <class Request>
napi_value run_later(const Call& call, Request request, size_t progress_index) {
  const size_t threads_index = progress_index + 1;
  const int most_threads =
      call.is_undefined(threads_index) ? INT_MAX : static_cast<int>(threads_argument(call, threads_index));
  JobInput input;
  input.on_progress = progress_argument(call, progress_index);
  input.output = request.find_or_make_output(call);
  input.output_bytes = request.output_bytes();
  const bool is_small = request.is_small();
  const auto source = request.pin(call, input.holds);
  input.make_work = [&](void* output) {
    using Work = decltype(request.make_work(call, source, 0, output));
    const int threads = std::min(most_threads, ThreadSlots::of_process().limit());
    auto work = std::unique_ptr<ChunkedWork>(new Work(request.make_work(call, source, threads, output)));
    work->limit_threads(most_threads);
    return work;
  };
  return start_job(call, std::move(input), is_small);
}

}  // namespace gguf::binding
