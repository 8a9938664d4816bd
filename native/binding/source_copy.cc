#include "binding/source_copy.h"

#include <algorithm>
#include <cstring>

#include "binding/buffers.h"
#include "core/checked.h"

namespace gguf::binding {

SourceCopy::SourceCopy(napi_env env, napi_value array, const uint8_t* data, uint64_t n_bytes)
    : n_bytes_(n_bytes), memory_(PinnedMemory::allocate(n_bytes)) {
  // Two parts, a millisecond or two: what is no larger than that may go away right after the call.
  copy_from(data);
  copy_from(data);
  if (is_complete()) return;
  array_ = Napi::Persistent(Napi::Object(env, array));
  TypedArray bytes;
  get_typed_array(env, array, &bytes);
  offset_ = static_cast<uint64_t>(data - bytes.data);
}

bool SourceCopy::copy_part(napi_env env) {
  const Napi::HandleScope scope(env);
  TypedArray bytes;
  get_typed_array(env, array_.Value(), &bytes);
  if (bytes.length * element_bytes(bytes.type) < offset_ + n_bytes_) return false;
  copy_from(bytes.data + offset_);
  if (is_complete()) array_.Reset();
  return true;
}

void SourceCopy::copy_from(const uint8_t* data) {
  const uint64_t part = std::min(kCopyPartBytes, n_bytes_ - copied_bytes_);
  std::memcpy(memory_->data() + copied_bytes_, data + copied_bytes_, to_size(part));
  copied_bytes_ += part;
}

}  // namespace gguf::binding
