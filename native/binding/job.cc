#include "binding/job.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "core/checked.h"
#include "machine/helper_threads.h"
#include "machine/thread_slots.h"

namespace gguf::binding {

namespace {

/** So many chunks that are ready keep the threads busy until the next turn of the event loop. */
constexpr uint64_t kEnoughChunks = 8;

/**
 * Results that are made to be copied wait while others have more than this, all together. The copying is done
 * by one thread, which many threads that make results would leave far behind.
 */
constexpr uint64_t kMaxStagedBytes = uint64_t{64} << 20;

/** What a thread copies at a time. */
constexpr uint64_t kCopyPieceBytes = uint64_t{256} << 10;

}  // namespace

Job::Job(Environment& environment, JobInput input)
    : environment_(environment),
      holds_{std::move(input.holds[0]), std::move(input.holds[1])},
      output_(Napi::Persistent(Napi::Object(environment.env, input.output.array))),
      output_given_(input.output.given),
      on_progress_(std::move(input.on_progress)),
      output_bytes_(input.output_bytes) {
  void* dst = input.output.data;
  if (output_bytes_ > 0 && output_given_ && !is_shared(environment.env, input.output.array)) {
    dst_hold_ = PinnedMemory::find(dst, output_bytes_);
    if (dst_hold_ == nullptr) {
      is_staged_ = true;
      dst = nullptr;
    }
  }
  // A new output cannot be detached: JavaScript does not get it before it is done.
  work_ = input.make_work(dst);
  announce_copied_bytes();
}

void Job::announce_copied_bytes() {
  const auto there = [](const BlockHold& hold) {
    return hold.copy == nullptr ? UINT64_MAX : hold.copy->copied_bytes();
  };
  work_->set_ready_bytes(there(holds_[0]), there(holds_[1]));
}

bool Job::feed() noexcept {
  try {
    return feed_source() && feed_staging();
  } catch (const std::bad_alloc&) {
    work_->fail(no_memory());
    return false;
  }
}

bool Job::feed_staging() {
  if (!is_staged_ || staging_ != nullptr || work_->unclaimed() == 0) return true;
  const uint64_t in_use = environment_.staged_bytes;
  if (in_use > 0 && output_bytes_ > kMaxStagedBytes - std::min(kMaxStagedBytes, in_use)) return true;
  try {
    staging_ = PinnedMemory::allocate(output_bytes_);
  } catch (const std::bad_alloc&) {
    work_->fail(Error{ErrorCode::kOutOfMemory, "there is no memory for a result of " +
                                                   std::to_string(output_bytes_) +
                                                   " bytes, which is made before it is copied to out"});
    return false;
  }
  environment_.staged_bytes += output_bytes_;
  work_->set_output(staging_->data());
  return true;
}

bool Job::feed_source() {
  if (!copies_source() || work_->is_exhausted() || work_->unclaimed() >= kEnoughChunks) return true;
  for (BlockHold& hold : holds_) {
    if (!hold.is_copying() || hold.copy->copy_part(environment_.env)) continue;
    work_->fail(Error{ErrorCode::kRange, "what is read was detached, moved or cut off meanwhile"});
    return false;
  }
  announce_copied_bytes();
  return true;
}

void Job::cancel() {
  cancelled_ = true;
  work_->stop();
}

void Job::fail(std::exception_ptr exception) {
  exception_ = std::move(exception);
  work_->stop();
}

void Job::report() {
  if (on_progress_.IsEmpty() || cancelled_ || settled_ || exception_) return;
  const uint64_t done = work_->done_elements();
  if (done == reported_elements_) return;
  reported_elements_ = done;
  try {
    Napi::Env env(environment_.env);
    on_progress_.Value().Call({Napi::Number::New(env, static_cast<double>(done)),
                               Napi::Number::New(env, static_cast<double>(work_->n_elements()))});
  } catch (...) {
    fail(std::current_exception());
  }
}

bool Job::finish() {
  if (settled_) return true;
  uint8_t* to;
  if (cancelled_) {
    reject(Napi::Env(environment_.env).Undefined());
  } else if (exception_) {
    reject(exception_);
  } else if (work_->failure()) {
    reject(*work_->failure());
  } else if (!find_output(&to)) {
    reject(Error{ErrorCode::kRange, "out was detached, moved or resized while the work was going on"});
  } else if (is_staged_ && !copy_part(to)) {
    return false;
  } else {
    resolve();
  }
  return true;
}

bool Job::find_output(uint8_t** data) {
  TypedArray array;
  get_typed_array(environment_.env, output_.Value(), &array);
  *data = array.data;
  return array.length * element_bytes(array.type) == output_bytes_;
}

bool Job::copy_part(uint8_t* to) {
  const uint64_t n_bytes = std::min(kCopyPartBytes, output_bytes_ - copied_bytes_);
  to += copied_bytes_;
  const uint8_t* const from = staging_->data() + copied_bytes_;
  // JavaScript cannot take the memory away before this returns, and most of the time goes into making pages.
  const uint64_t n_pieces = (n_bytes + kCopyPieceBytes - 1) / kCopyPieceBytes;
  const int most = std::min(ThreadSlots::of_process().limit(), work_->most_threads());
  const int n_helpers = gguf::useful_threads(n_pieces, static_cast<uint64_t>(most)) - 1;
  std::atomic<uint64_t> next{0};
  environment_.helper_threads->run(n_helpers, environment_.scratch, [&](std::vector<uint8_t>&) {
    for (;;) {
      const uint64_t at = next.fetch_add(kCopyPieceBytes, std::memory_order_relaxed);
      if (at >= n_bytes) return;
      std::memcpy(to + at, from + at, to_size(std::min(kCopyPieceBytes, n_bytes - at)));
    }
  });
  copied_bytes_ += n_bytes;
  return copied_bytes_ == output_bytes_;
}

// What settles the promise runs JavaScript, which may cancel this job: `settled_` is set before.

void Job::resolve() {
  settled_ = true;
  deferred_.resolve(output_.Value());
  release();
}

void Job::reject(const Error& error) {
  settled_ = true;
  try {
    const std::optional<std::string>& path = holds_[error.of_other].path;
    reject(make_error(environment_, error, path ? &*path : nullptr));
  } catch (...) {
    reject(std::current_exception());
  }
}

void Job::reject(std::exception_ptr exception) {
  settled_ = true;
  try {
    std::rethrow_exception(std::move(exception));
  } catch (...) {
    const napi_value reason = caught_value(environment_);
    reject(reason != nullptr ? reason : static_cast<napi_value>(Napi::Env(environment_.env).Undefined()));
  }
}

void Job::reject(napi_value reason) {
  settled_ = true;
  deferred_.reject(reason);
  if (!output_given_) {
    // JavaScript never gets it: free a large output now rather than with the next garbage collection.
    napi_value buffer;
    if (napi_get_typedarray_info(environment_.env, output_.Value(), nullptr, nullptr, nullptr, &buffer,
                                 nullptr) == napi_ok) {
      napi_detach_arraybuffer(environment_.env, buffer);
    }
  }
  release();
}

void Job::release() {
  // The object that JavaScript cancels with may exist much longer.
  for (BlockHold& hold : holds_) hold = BlockHold{};
  output_.Reset();
  exception_ = nullptr;
  on_progress_.Reset();
  dst_hold_.reset();
  if (staging_ != nullptr) {
    staging_.reset();
    environment_.staged_bytes -= output_bytes_;
  }
}

}  // namespace gguf::binding
