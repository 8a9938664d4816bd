// Work that the calling thread waits for, on as many threads as help.
#pragma once

#include <napi.h>

#include <cstdint>

#include "binding/call.h"
#include "binding/environment.h"
#include "machine/helper_threads.h"
#include "work/chunked_work.h"

namespace gguf::binding {

/** The most threads that may work: argument `index`, or as many as run at the same time. */
uint64_t threads_argument(const Call& call, size_t index);

/** Calls `work(scratch)` on this thread and on up to `threads` - 1 others at the same time. */
template <class Work>
void on_threads(const Call& call, int threads, const Work& work) {
  Environment& environment = call.environment();
  environment.helper_threads->run(threads - 1, environment.scratch, work);
  drop_large_scratch(environment.scratch);
}

/** Nothing stops work that the calling thread waits for. */
constexpr bool never() {
  return false;
}

/** Does all of `work` on this thread and up to `threads` - 1 others. `path`: the file that an error is about,
 * if there is one. */
void work_now(const Call& call, ChunkedWork& work, int threads, const std::string* path);

}  // namespace gguf::binding
