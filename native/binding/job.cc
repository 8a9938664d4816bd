#include "binding/job.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/errors.h"
#include "core/checked.h"

namespace gguf::binding {

namespace {

/** So many chunks that are ready keep the threads busy until the next turn of the event loop. */
constexpr uint64_t kEnoughChunks = 8;

}  // namespace

Job::Job(Environment& environment, JobInput input)
    : environment_(environment),
      hold_(std::move(input.hold)),
      other_hold_(std::move(input.other_hold)),
      path_(std::move(input.path)),
      other_path_(std::move(input.other_path)),
      output_(Napi::Persistent(Napi::Object(environment.env, input.output.array))),
      output_given_(input.output.given),
      on_progress_(std::move(input.on_progress)),
      output_bytes_(input.output_bytes) {
  void* dst = input.output.data;
  if (output_bytes_ > 0 && output_given_ && !is_shared(environment.env, input.output.array)) {
    dst_hold_ = PinnedMemory::find(dst, output_bytes_);
    if (dst_hold_ == nullptr) {
      staging_ = PinnedMemory::allocate(output_bytes_);
      dst = staging_->data();
    }
  }
  // A new output cannot be detached: JavaScript does not get it before it is done.
  work_ = input.make_work(dst);
  announce_copied_bytes();
}

void Job::announce_copied_bytes() {
  if (hold_.copy == nullptr) return;
  work_->set_ready_bytes(hold_.copy->copied_bytes());
}

bool Job::feed() {
  if (!copies_source() || work_->is_exhausted() || work_->unclaimed() >= kEnoughChunks) return true;
  if (!hold_.copy->copy_part(environment_.env)) {
    work_->fail(Error{ErrorCode::kRange, "the blocks were detached, moved or cut off while they were read"});
    return false;
  }
  announce_copied_bytes();
  return true;
}

void Job::cancel() {
  cancelled_ = true;
  work_->stop();
}

void Job::report() {
  if (on_progress_.IsEmpty() || cancelled_ || settled_ || callback_error_) return;
  const uint64_t done = work_->done_elements();
  if (done == reported_elements_) return;
  reported_elements_ = done;
  try {
    Napi::Env env(environment_.env);
    on_progress_.Value().Call({Napi::Number::New(env, static_cast<double>(done)),
                               Napi::Number::New(env, static_cast<double>(work_->n_elements()))});
  } catch (...) {
    callback_error_ = std::current_exception();
    work_->stop();
  }
}

bool Job::finish() {
  if (settled_) return true;
  uint8_t* to;
  if (cancelled_) {
    reject(Napi::Env(environment_.env).Undefined());
  } else if (callback_error_) {
    reject(callback_error_);
  } else if (work_->failure()) {
    reject(*work_->failure());
  } else if (!find_output(&to)) {
    reject(Error{ErrorCode::kRange, "out was detached, moved or resized while the work was going on"});
  } else if (staging_ != nullptr && !copy_part(to)) {
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
  std::memcpy(to + copied_bytes_, staging_->data() + copied_bytes_, to_size(n_bytes));
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
    const std::optional<std::string>& path = error.of_other ? other_path_ : path_;
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
  hold_ = BlockHold{};
  other_hold_ = BlockHold{};
  output_.Reset();
  callback_error_ = nullptr;
  on_progress_.Reset();
  dst_hold_.reset();
  staging_.reset();
}

}  // namespace gguf::binding
