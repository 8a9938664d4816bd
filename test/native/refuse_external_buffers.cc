// Linked into the addon for a test, in the place of Node's function: a runtime that forbids external
// ArrayBuffers, as Electron does. FINALIZE says whether it calls the finalizer of what it refused, "now" or
// "later".
#include <node_api.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace {

struct Refused {
  napi_env env;
  void* data;
  napi_finalize finalize;
  void* hint;

  void end() const { finalize(env, data, hint); }
};

}  // namespace

extern "C" napi_status napi_create_external_arraybuffer(napi_env env, void* data, size_t,
                                                        napi_finalize finalize, void* hint, napi_value*) {
  const char* const setting = std::getenv("FINALIZE");
  const std::string when = setting == nullptr ? "" : setting;
  const Refused refused{env, data, finalize, hint};
  if (when == "now") refused.end();
  if (when == "later") {
    const auto end = [](void* refused) {
      static_cast<Refused*>(refused)->end();
      delete static_cast<Refused*>(refused);
    };
    napi_add_env_cleanup_hook(env, end, new Refused(refused));
  }
  return napi_no_external_buffers_allowed;
}
