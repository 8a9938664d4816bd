// Loads the addon as Node on Alpine Linux would: musl has to find all that it needs, and to carry a C++
// exception from the addon's inside to its edge. Node's own functions are stand-ins: those here, and a
// generated weak one that fails for every other name of Node-API.
#include <dlfcn.h>
#include <js_native_api.h>
#include <stdio.h>

static const napi_extended_error_info failure = {"a stand-in failed", NULL, 0, napi_generic_failure};
static const char* thrown;

napi_status napi_get_last_error_info(napi_env env, const napi_extended_error_info** info) {
  *info = &failure;
  return napi_ok;
}

napi_status napi_open_handle_scope(napi_env env, napi_handle_scope* scope) {
  return napi_ok;
}

napi_status napi_close_handle_scope(napi_env env, napi_handle_scope scope) {
  return napi_ok;
}

napi_status napi_is_exception_pending(napi_env env, bool* pending) {
  *pending = false;
  return napi_ok;
}

napi_status napi_create_string_utf8(napi_env env, const char* text, size_t length, napi_value* value) {
  *value = (napi_value)text;
  return napi_ok;
}

napi_status napi_create_error(napi_env env, napi_value code, napi_value message, napi_value* error) {
  *error = message;
  return napi_ok;
}

napi_status napi_create_reference(napi_env env, napi_value value, uint32_t count, napi_ref* reference) {
  *reference = (napi_ref)value;
  return napi_ok;
}

napi_status napi_get_reference_value(napi_env env, napi_ref reference, napi_value* value) {
  *value = (napi_value)reference;
  return napi_ok;
}

napi_status napi_typeof(napi_env env, napi_value value, napi_valuetype* type) {
  *type = napi_symbol;  // thrown as it is
  return napi_ok;
}

napi_status napi_throw(napi_env env, napi_value error) {
  thrown = (const char*)error;
  return napi_ok;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  void* addon = dlopen(arguments[1], RTLD_NOW);
  if (addon == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  napi_value (*initialize)(napi_env, napi_value) = dlsym(addon, "napi_register_module_v1");
  if (initialize == NULL) return 1;
  initialize((napi_env)&failure, (napi_value)&failure);
  printf("thrown: %s\n", thrown == NULL ? "nothing" : thrown);
  return thrown == NULL;
}
