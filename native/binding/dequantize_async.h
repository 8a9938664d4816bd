// Asynchronous dequantization as JavaScript asks for it.
#pragma once

#include "binding/call.h"

namespace gguf::binding {

napi_value dequantize_async(const Call& call);
napi_value dequantize_rows_async(const Call& call);
napi_value dequantize_blocks_async(const Call& call);
napi_value cancel_job(const Call& call);

}  // namespace gguf::binding
