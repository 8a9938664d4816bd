#include "binding/work_now.h"

#include <algorithm>
#include <vector>

#include "binding/environment.h"
#include "binding/errors.h"
#include "machine/helper_threads.h"
#include "machine/processors.h"

namespace gguf::binding {

uint64_t threads_argument(const Call& call, size_t index) {
  const auto most = static_cast<uint64_t>(processors());
  if (call.is_undefined(index)) return most;
  const uint64_t threads = call.whole(index, "threads");
  if (threads == 0) throw_range(call.environment(), "threads must be at least 1, found 0");
  return std::min(threads, most);
}

void work_now(const Call& call, ChunkedWork& work, int threads, const std::string* path) {
  on_threads(call, threads, [&](std::vector<uint8_t>& scratch) { work.work(scratch, never); });
  if (const Status& failure = work.failure()) throw_error(call.environment(), *failure, path);
}

}  // namespace gguf::binding
