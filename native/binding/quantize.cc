// Blocks for files that are written: made of numbers, and in the other byte order.
#include <string>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/quantization_request.h"
#include "binding/run.h"
#include "dequant/block_fields.h"

namespace gguf::binding {

napi_value quantize_sync(const Call& call) {
  return run_now(call, QuantizationRequest(call, 6), 5);
}

napi_value quantize_async(const Call& call) {
  return run_later(call, QuantizationRequest(call, 7), 5);
}

napi_value swap_block_bytes(const Call& call) {
  Environment& environment = call.environment();
  const Format format = find_format_or_throw(environment, call.uint32(0, "type"));
  const auto blocks_argument = [&] { return array_argument(call, 1, "blocks", napi_uint8_array); };
  const size_t length = blocks_argument().length;
  if (length % format.block_bytes != 0) {
    throw_range(environment,
                std::to_string(length) + " bytes are not a whole number of " + format.name + " blocks");
  }
  void* to = nullptr;
  const napi_value out = new_whole_array(environment, napi_uint8_array, length, &to, nullptr);
  // Making an array can run JavaScript.
  const TypedArray blocks = blocks_argument();
  if (blocks.length != length) throw_range(environment, "blocks changed its length");
  swap_blocks(fields_of(format), blocks.data, length / format.block_bytes, static_cast<uint8_t*>(to));
  return out;
}

}  // namespace gguf::binding
