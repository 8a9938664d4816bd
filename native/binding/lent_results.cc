#include "binding/lent_results.h"

#include <algorithm>
#include <utility>

#include "binding/errors.h"
#include "binding/page_pool.h"

namespace gguf::binding {

// Memory is moved by ArrayBuffer.prototype.transfer, which came after Node 20, and by Node's streams of
// bytes, which ignore that a buffer must not be transferred.
LentResults::LentResults(napi_env env) : env_(env) {
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

LentResults::~LentResults() {
  for (const Loan& loan : loans_) napi_delete_reference(env_, loan.buffer);
}

bool LentResults::memory_can_move() {
  if (memory_can_move_) return true;
  const Napi::Array modules = loaded_modules_.Value();
  for (const uint32_t length = modules.Length(); n_known_modules_ < length; ++n_known_modules_) {
    const Napi::Value name = modules.Get(n_known_modules_);
    if (name.StrictEquals(Napi::String::New(env_, "NativeModule internal/webstreams/readablestream"))) {
      memory_can_move_ = true;
    }
  }
  return memory_can_move_;
}

bool LentResults::is_over(const Loan& loan) {
  if (loan.hold->memory == nullptr) return true;  // Node has said so
  const Napi::HandleScope scope(env_);
  if (memory_can_move()) return false;
  napi_value buffer = nullptr;
  check(env_, napi_get_reference_value(env_, loan.buffer, &buffer));
  if (buffer != nullptr) return false;
  loan.hold->memory.reset();
  return true;
}

bool LentResults::has_room(uint64_t n_bytes) {
  const auto still_lent =
      std::partition(loans_.begin(), loans_.end(), [&](const Loan& loan) { return !is_over(loan); });
  for (auto loan = still_lent; loan != loans_.end(); ++loan) {
    napi_delete_reference(env_, loan->buffer);
    n_bytes_ -= loan->n_bytes;
  }
  loans_.erase(still_lent, loans_.end());
  const uint64_t limit = page_pool::limit();
  return n_bytes <= limit && n_bytes_ <= limit - n_bytes;
}

void LentResults::lend(napi_value buffer, std::shared_ptr<BufferHold> hold) {
  loans_.reserve(loans_.size() + 1);
  napi_ref reference;
  check(env_, napi_create_reference(env_, buffer, 0, &reference));
  const uint64_t n_bytes = hold->memory->size();
  loans_.push_back({reference, std::move(hold), n_bytes});
  n_bytes_ += n_bytes;
}

}  // namespace gguf::binding
