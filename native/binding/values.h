// Metadata values as JavaScript values.
#pragma once

#include "binding/call.h"

namespace gguf::binding {

napi_value metadata_value(const Call& call);
napi_value metadata_bytes(const Call& call);

}  // namespace gguf::binding
