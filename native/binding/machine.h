// What the addon knows and what the machine can do.
#pragma once

#include "binding/call.h"

namespace gguf::binding {

napi_value list_formats(const Call& call);
napi_value describe_cpu(const Call& call);

}  // namespace gguf::binding
