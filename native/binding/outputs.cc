#include "binding/outputs.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "binding/buffers.h"
#include "binding/entry_points.h"
#include "binding/environment.h"
#include "core/checked.h"
#include "core/pages.h"
#include "machine/page_pool.h"
#include "work/decode_blocks.h"

namespace gguf::binding {

namespace {

/** The type of array that holds `out`. */
napi_typedarray_type output_type(Out out) {
  return out == Out::kFloat32 ? napi_float32_array : napi_uint16_array;
}

}  // namespace

Out dtype_argument(const Call& call, size_t index) {
  const uint64_t dtype = call.whole(index, "dtype");
  if (dtype > 2) {
    throw_range(call.environment(), "dtype must be 0, 1 or 2, found " + std::to_string(dtype));
  }
  return static_cast<Out>(dtype);
}

Output new_output(Environment& environment, Out out, uint64_t n_elements) {
  Output output;
  output.array = new_typed_array(environment, output_type(out), n_elements, &output.data);
  const uint64_t n_bytes = n_elements * out_bytes(out);
  // Before the first store. A range of that size has a whole huge page in it, wherever it starts.
  if (n_bytes >= 2 * kHugePageBytes) want_huge_pages(output.data, to_size(n_bytes));
  return output;
}

std::optional<Output> output_argument(const Call& call, size_t index, Out out, uint64_t n_elements,
                                      const std::string* path) {
  TypedArray array;
  const bool is_typed_array = get_typed_array(call.env(), call[index], &array);
  if (!is_typed_array && call.is_undefined(index)) return std::nullopt;
  if (!is_typed_array || array.type != output_type(out)) {
    throw_arg_type(call.environment(), "out",
                   out == Out::kFloat32 ? "an instance of Float32Array" : "an instance of Uint16Array");
  }
  if (array.length != n_elements) {
    throw_range(call.environment(),
                "out holds " + std::to_string(array.length) + " elements, the result has " +
                    std::to_string(n_elements),
                path);
  }
  // Possible only over an external buffer that starts at an odd address.
  if (reinterpret_cast<uintptr_t>(array.data) % out_bytes(out) != 0) {
    throw_range(call.environment(), "the memory of out is not aligned to its elements", path);
  }
  // An array that was never written to has no pages yet: with large ones it takes half the time, now and on
  // every later use.
  const uint64_t n_bytes = n_elements * out_bytes(out);
  if (n_bytes >= page_pool::kMinBytes && !pages_are_present(array.data + n_bytes / 2, 1)) {
    want_huge_pages(array.data, to_size(n_bytes));
  }
  return Output{call[index], array.data, true};
}

napi_value allocate_array(const Call& call) {
  Environment& environment = call.environment();
  const uint64_t length = call.whole(0, "length");
  const Out out = dtype_argument(call, 1);
  constexpr uint64_t kMaxArrayBytes = std::min<uint64_t>(SIZE_MAX, (uint64_t{1} << 53) - 1);  // of JavaScript
  if (length > kMaxArrayBytes / out_bytes(out)) throw_range(environment, "no array can have that length");
  const uint64_t n_bytes = length * out_bytes(out);
  if (n_bytes > 0) {
    std::shared_ptr<PinnedMemory> memory;
    try {
      memory = PinnedMemory::allocate_zeroed(n_bytes);
    } catch (const std::bad_alloc&) {
      const std::string detail = "there is no memory for " + std::to_string(n_bytes) + " bytes";
      throw_error(environment, Error{ErrorCode::kOutOfMemory, detail});
    }
    uint8_t* const data = memory->data();
    const napi_value buffer = new_external(environment, data, n_bytes, std::move(memory));
    if (buffer != nullptr) return new_view(environment, output_type(out), buffer, 0, length);
  }
  void* data;
  return new_typed_array(environment, output_type(out), length, &data);
}

napi_value trim_pool(const Call&) {
  page_pool::trim();
  return nullptr;
}

}  // namespace gguf::binding
