#include "wasm/reply.h"

#include "wasm/module.h"

namespace gguf {

GGUF_EXPORT("reply_is_error") bool module_reply_is_error(const Reply* reply) {
  return reply->is_error();
}

GGUF_EXPORT("reply_columns") uint32_t module_reply_columns(const Reply* reply) {
  return static_cast<uint32_t>(reply->columns().size());
}

GGUF_EXPORT("reply_column") const void* module_reply_column(const Reply* reply, uint32_t index) {
  return reply->columns()[index].data;
}

GGUF_EXPORT("reply_bytes") uint32_t module_reply_bytes(const Reply* reply, uint32_t index) {
  return reply->columns()[index].n_bytes;
}

GGUF_EXPORT("free_reply") void module_free_reply(const Reply* reply) {
  delete reply;
}

}  // namespace gguf
