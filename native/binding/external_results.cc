#include "binding/external_results.h"

#include <algorithm>
#include <utility>

#include "binding/errors.h"
#include "decode/page_pool.h"

namespace gguf::binding {

// Memory is moved by ArrayBuffer.prototype.transfer, which came after Node 20, and by Node's streams of
// bytes, which ignore that a buffer must not be transferred.
ExternalResults::ExternalResults(napi_env env) : env_(env) {
  const Napi::Object global = Napi::Env(env).Global();
  const Napi::Object prototype =
      global.Get("ArrayBuffer").As<Napi::Object>().Get("prototype").As<Napi::Object>();
  memory_can_move_ = true;
  const Napi::Value process = global.Get("process");
  if (prototype.Has("transfer") || !process.IsObject()) return;
  const Napi::Value modules = process.As<Napi::Object>().Get("moduleLoadList");
  if (!modules.IsArray()) return;
  loaded_modules_ = Napi::Persistent(modules.As<Napi::Array>());
  memory_can_move_ = false;
}

ExternalResults::~ExternalResults() {
  for (const Result& result : results_) napi_delete_reference(env_, result.buffer);
}

void ExternalResults::update_memory_can_move() {
  if (memory_can_move_) return;
  try {
    const Napi::HandleScope scope(env_);
    const Napi::Array modules = loaded_modules_.Value();
    const uint32_t length = modules.Length();
    if (length < n_known_modules_) memory_can_move_ = true;  // what is loaded now may not be found
    for (uint32_t i = n_known_modules_; i < length; ++i) {
      const Napi::Value name = modules.Get(i);
      if (name.StrictEquals(Napi::String::New(env_, "NativeModule internal/webstreams/readablestream"))) {
        memory_can_move_ = true;
      }
    }
    n_known_modules_ = std::max(n_known_modules_, length);
  } catch (const Napi::Error&) {
    memory_can_move_ = true;  // a getter threw: this list cannot be relied on
  }
}

bool ExternalResults::free_if_unused(const Result& result) const {
  if (result.hold->memory == nullptr) return true;  // Node has reported it
  if (memory_can_move_) return false;
  const Napi::HandleScope scope(env_);
  napi_value buffer = nullptr;
  check(env_, napi_get_reference_value(env_, result.buffer, &buffer));
  if (buffer != nullptr) return false;
  result.hold->memory.reset();
  return true;
}

bool ExternalResults::has_room(uint64_t n_bytes) {
  update_memory_can_move();
  // From here on no JavaScript runs.
  const auto unused = std::partition(results_.begin(), results_.end(),
                                     [this](const Result& result) { return !free_if_unused(result); });
  for (auto result = unused; result != results_.end(); ++result) {
    napi_delete_reference(env_, result->buffer);
    n_bytes_ -= result->n_bytes;
  }
  results_.erase(unused, results_.end());
  const uint64_t limit = page_pool::limit();
  return n_bytes <= limit && n_bytes_ <= limit - n_bytes;
}

void ExternalResults::add(napi_value buffer, std::shared_ptr<BufferHold> hold) {
  results_.reserve(results_.size() + 1);
  napi_ref reference;
  check(env_, napi_create_reference(env_, buffer, 0, &reference));
  const uint64_t n_bytes = hold->memory->size();
  results_.push_back({reference, std::move(hold), n_bytes});
  n_bytes_ += n_bytes;
}

}  // namespace gguf::binding
