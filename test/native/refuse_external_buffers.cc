// Linked into the addon for a test, in the place of Node's function: a runtime that forbids external
// ArrayBuffers, as Electron does.
#include <node_api.h>

#include <cstddef>

extern "C" napi_status napi_create_external_arraybuffer(napi_env, void*, size_t, napi_finalize, void*,
                                                        napi_value*) {
  return napi_no_external_buffers_allowed;
}
