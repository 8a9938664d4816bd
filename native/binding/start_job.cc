// Jobs as JavaScript has them: an object to cancel each with, and a promise.
#include <memory>
#include <utility>

#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/job.h"
#include "binding/tagged.h"

namespace gguf::binding {

namespace {

constexpr napi_type_tag kJobTag = {0x5e07b81c9d3a4f62, 0xa4c3917e08d25bf6};

}  // namespace

Napi::FunctionReference progress_argument(const Call& call, size_t index) {
  if (call.is_undefined(index)) return {};
  return Napi::Persistent(call.function(index, "onProgress"));
}

napi_value start_job(const Call& call, JobInput input, bool is_small) {
  Environment& environment = call.environment();
  const bool is_in_memory =
      !input.holds[0].path && !input.holds[1].path;  // reading it never waits for a disk
  const auto job = std::make_shared<Job>(environment, std::move(input));

  Napi::Object started = Napi::Object::New(call.env());
  started.Set("promise", job->promise());
  started.Set("job", wrap(call.env(), kJobTag, std::make_unique<std::shared_ptr<Job>>(job), sizeof(Job)));
  if (is_small && is_in_memory && job->feed() && job->has_work()) {
    job->work().work(environment.scratch, [] { return false; });
    job->report();
  }
  environment.scheduler.start(job);
  return started;
}

napi_value cancel_job(const Call& call) {
  auto* const job = unwrap<std::shared_ptr<Job>>(call.env(), kJobTag, call[0]);
  if (job == nullptr) throw_arg_type(call.environment(), "job", "a job of this addon");
  call.environment().scheduler.cancel(*job);
  return nullptr;
}

}  // namespace gguf::binding
