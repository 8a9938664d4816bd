// The typed arrays that numbers are written to: given by the caller, or made here.
#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <string>

#include "binding/call.h"
#include "dequant/out.h"

namespace gguf::binding {

/** An output: JavaScript's array, and where its elements are until JavaScript runs again. */
struct Output {
  napi_value array = nullptr;
  void* data = nullptr;
  bool given = false;  // by the caller
};

/** dtype: 0, 1 or 2. */
Out dtype_argument(const Call& call, size_t index);
/** The array of argument `index`, which must have `n_elements` elements of `out`; nothing where it is
   undefined. `path`: the file that an error is about, if there is one. */
std::optional<Output> output_argument(const Call& call, size_t index, Out out, uint64_t n_elements,
                                      const std::string* path);
/** A new array in JavaScript's own memory, which can be transferred to other threads whatever its size. May
   run JavaScript. */
Output new_output(Environment& environment, Out out, uint64_t n_elements);

}  // namespace gguf::binding
