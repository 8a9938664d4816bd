// Opening: files, now or off the main thread, and bytes in memory.
#pragma once

#include "binding/call.h"

namespace gguf::binding {

napi_value open_sync(const Call& call);
napi_value open_async(const Call& call);
napi_value parse_memory(const Call& call);
napi_value close_file(const Call& call);

}  // namespace gguf::binding
