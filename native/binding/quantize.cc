// Blocks for files that are written: made of numbers, and in the other byte order.
#include "quant/quantize.h"

#include <string>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "binding/file_handle.h"
#include "dequant/block_fields.h"

namespace gguf::binding {

napi_value quantize_numbers(const Call& call) {
  Environment& environment = call.environment();
  const Format format = find_format_or_throw(environment, call.uint32(0, "type"));
  if (!can_quantize(format)) {
    throw_error(environment, Error{ErrorCode::kUnsupportedType,
                                   std::string("cannot make blocks of the tensor type ") + format.name});
  }
  const TypedArray values = floats_argument(call, 1, "values");
  TypedArray out;
  if (!get_typed_array(call.env(), call[2], &out) || out.type != napi_uint8_array) {
    throw_arg_type(call.environment(), "out", "an instance of Uint8Array");
  }
  const size_t n_blocks = values.length / format.block_elements;
  if (values.length % format.block_elements != 0 || out.length % format.block_bytes != 0 ||
      out.length / format.block_bytes != n_blocks) {
    throw_range(environment, std::to_string(values.length) + " numbers do not make " +
                                 std::to_string(out.length) + " bytes of " + format.name + " blocks");
  }
  quantize(format, reinterpret_cast<const float*>(values.data), n_blocks, out.data);
  return call[2];
}

napi_value swap_block_bytes(const Call& call) {
  Environment& environment = call.environment();
  const Format format = find_format_or_throw(environment, call.uint32(0, "type"));
  const auto blocks_argument = [&] {
    TypedArray blocks;
    if (!get_typed_array(call.env(), call[1], &blocks) || blocks.type != napi_uint8_array) {
      throw_arg_type(call.environment(), "blocks", "an instance of Uint8Array");
    }
    return blocks;
  };
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
