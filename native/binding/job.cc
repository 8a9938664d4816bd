#include "binding/job.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "binding/buffers.h"
#include "binding/environment.h"
#include "binding/errors.h"

namespace gguf::binding {

namespace {

/** So many chunks in store keep the threads busy until the event loop comes round again. */
constexpr uint64_t kChunksInStore = 8;

}  // namespace

Job::Job(Environment& environment, JobInput input)
    : environment_(environment),
      range_(input.range),
      hold_(std::move(input.hold)),
      path_(std::move(input.path)),
      output_(Napi::Persistent(Napi::Object(environment.env, input.output.array))),
      output_given_(input.output.given),
      on_progress_(std::move(input.on_progress)) {
  void* dst = input.output.data;
  const uint64_t n_bytes = range_.dst_bytes();
  if (n_bytes > 0 && output_given_ && !is_shared(environment.env, input.output.array)) {
    dst_hold_ = PinnedMemory::find(dst, n_bytes);
    if (dst_hold_ == nullptr) {
      detour_ = PinnedMemory::allocate(n_bytes);
      dst = detour_->data();
    }
  }
  // An output that was just made is seen by nobody before it is done, so that nobody can detach it.
  decode_.emplace(input.source, std::move(input.order), *range_.format, range_.out, may_stream(n_bytes),
                  range_.n_blocks, dst);
  if (copies_source()) decode_->set_ready_blocks(hold_.copy->copied_bytes() / range_.format->block_bytes);
}

bool Job::feed() {
  if (!copies_source() || decode_->is_exhausted() || decode_->unclaimed() >= kChunksInStore) return true;
  if (!hold_.copy->copy_part(environment_.env)) {
    decode_->fail(
        Error{ErrorCode::kRange, "the blocks were detached, moved or cut off while they were read"});
    return false;
  }
  decode_->set_ready_blocks(hold_.copy->copied_bytes() / range_.format->block_bytes);
  return true;
}

void Job::cancel() {
  cancelled_ = true;
  decode_->stop();
}

void Job::report() {
  if (on_progress_.IsEmpty() || cancelled_ || settled_ || callback_error_) return;
  const uint64_t done = decode_->done_elements();
  if (done == reported_elements_) return;
  reported_elements_ = done;
  try {
    Napi::Env env(environment_.env);
    on_progress_.Value().Call({Napi::Number::New(env, static_cast<double>(done)),
                               Napi::Number::New(env, static_cast<double>(range_.n_elements()))});
  } catch (...) {
    callback_error_ = std::current_exception();
    decode_->stop();
  }
}

bool Job::finish() {
  if (settled_) return true;
  uint8_t* to;
  if (cancelled_) {
    reject(Napi::Env(environment_.env).Undefined());
  } else if (callback_error_) {
    reject(callback_error_);
  } else if (decode_->failure()) {
    reject(*decode_->failure());
  } else if (!find_output(&to)) {
    reject(Error{ErrorCode::kRange, "out was detached, moved or resized while the work was going on"});
  } else if (detour_ != nullptr && !copy_part(to)) {
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
  return array.length == range_.n_elements();
}

bool Job::copy_part(uint8_t* to) {
  const uint64_t n_bytes = std::min(kCopyPartBytes, range_.dst_bytes() - copied_bytes_);
  std::memcpy(to + copied_bytes_, detour_->data() + copied_bytes_, static_cast<size_t>(n_bytes));
  copied_bytes_ += n_bytes;
  return copied_bytes_ == range_.dst_bytes();
}

void Job::resolve() {
  settled_ = true;
  deferred_.resolve(output_.Value());
  let_go();
}

void Job::reject(const Error& error) {
  try {
    reject(make_error(environment_, error, path_ ? &*path_ : nullptr));
  } catch (...) {
    reject(std::current_exception());
  }
}

void Job::reject(std::exception_ptr exception) {
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
    // Nobody will ever see it: do not leave a large output to the next garbage collection.
    napi_value buffer;
    if (napi_get_typedarray_info(environment_.env, output_.Value(), nullptr, nullptr, nullptr, &buffer,
                                 nullptr) == napi_ok) {
      napi_detach_arraybuffer(environment_.env, buffer);
    }
  }
  let_go();
}

void Job::let_go() {
  // The object that JavaScript cancels with may live on for long.
  hold_ = BlockHold{};
  output_.Reset();
  callback_error_ = nullptr;
  on_progress_.Reset();
  dst_hold_.reset();
  detour_.reset();
}

}  // namespace gguf::binding
