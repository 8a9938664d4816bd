// What a header says, as arrays for JavaScript: one per property instead of one object per entry, which is
// what makes 200,000 entries fast.
#pragma once

#include "binding/call.h"

namespace gguf::binding {

napi_value file_info(const Call& call);
napi_value list_keys(const Call& call);
napi_value list_tensors(const Call& call);

}  // namespace gguf::binding
