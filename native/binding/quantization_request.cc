#include "binding/quantization_request.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "binding/environment.h"
#include "binding/file_handle.h"
#include "binding/strings.h"
#include "core/checked.h"
#include "core/pages.h"

namespace gguf::binding {

namespace {

constexpr size_t kNumbers = 1, kColumns = 2, kImportance = 3, kOut = 4;

/** A copy of the weights of `columns` columns, which is then checked: another thread may be writing to the
 * array. */
std::vector<float> importance_argument(const Call& call, uint64_t columns) {
  const TypedArray array = floats_argument(call, kImportance, "importance");
  if (array.length != columns) {
    throw_range(call.environment(), "importance has " + std::to_string(array.length) +
                                        " weights, a row has " + std::to_string(columns) + " columns");
  }
  std::vector<float> weights(array.length);
  if (columns > 0) std::memcpy(weights.data(), array.data, weights.size() * sizeof(float));
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && std::isfinite(weights[i])) continue;
    throw_range(call.environment(), "importance[" + std::to_string(i) +
                                        "] must be finite and not negative, found " +
                                        number_text(static_cast<double>(weights[i])));
  }
  return weights;
}

/** The Uint8Array of `n_bytes` of the argument. */
TypedArray bytes_argument(const Call& call, uint64_t n_bytes) {
  const TypedArray array = array_argument(call, kOut, "out", napi_uint8_array);
  if (array.length != n_bytes) {
    throw_range(call.environment(), "out has " + std::to_string(array.length) + " bytes, the blocks have " +
                                        std::to_string(n_bytes));
  }
  return array;
}

}  // namespace

QuantizationRequest::QuantizationRequest(const Call& call, size_t best_index) {
  Environment& environment = call.environment();
  const Format format = find_format_or_throw(environment, call.uint32(0, "type"));
  if (!can_quantize(format)) {
    throw_error(environment, Error{ErrorCode::kUnsupportedType,
                                   std::string("cannot make blocks of the tensor type ") + format.name});
  }
  take_numbers(call, kNumbers);
  const uint64_t n_numbers = array_bytes() / sizeof(float);
  task_.format = format;
  task_.columns = call.whole(kColumns, "columns");
  if (task_.columns == 0 || task_.columns % format.block_elements != 0 || n_numbers % task_.columns != 0) {
    throw_range(environment, std::to_string(n_numbers) + " numbers are not rows of " +
                                 std::to_string(task_.columns) + " columns in whole " + format.name +
                                 " blocks");
  }
  task_.n_blocks = n_numbers / format.block_elements;
  if (!call.is_undefined(best_index) && call.boolean(best_index, "best")) task_.search = Search::kBest;
  if (!call.is_undefined(kImportance)) {
    task_.importance = importance_argument(call, task_.columns);
  } else if (needs_importance(format)) {
    throw_error(environment, Error{ErrorCode::kUnsupportedType, std::string("blocks of the tensor type ") +
                                                                    format.name + " need importance"});
  }
}

Output QuantizationRequest::find_or_make_output(const Call& call) const {
  if (!call.is_undefined(kOut)) return {call[kOut], bytes_argument(call, output_bytes()).data, true};
  locate(call);
  Output output;
  output.array = new_whole_array(call.environment(), napi_uint8_array, output_bytes(), &output.data, nullptr);
  // Before the first store, as for numbers.
  if (output_bytes() >= 2 * kHugePageBytes) want_huge_pages(output.data, to_size(output_bytes()));
  return output;
}

}  // namespace gguf::binding
