// Products as JavaScript asks for them: at once, or as a job.
#include "binding/entry_points.h"
#include "binding/product_request.h"
#include "binding/run.h"

namespace gguf::binding {

napi_value multiply_sync(const Call& call) {
  return run_now(call, ProductRequest::of_tensor(call), 8);
}

napi_value multiply_async(const Call& call) {
  return run_later(call, ProductRequest::of_tensor(call), 8);
}

napi_value multiply_blocks_sync(const Call& call) {
  return run_now(call, ProductRequest::of_bytes(call, false), 6);
}

napi_value multiply_blocks_async(const Call& call) {
  return run_later(call, ProductRequest::of_bytes(call, call.boolean(8, "bigEndian")), 6);
}

}  // namespace gguf::binding
