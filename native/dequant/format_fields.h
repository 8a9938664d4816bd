// The fields inside a format's blocks: what only big-endian files need to know.
#pragma once

#include "dequant/byte_order.h"
#include "dequant/dequant.h"

namespace gguf {

/** `format` is one of formats(). */
const Fields& fields_of(const Format& format);

/** Whether there are numbers of more than one byte in its blocks. */
inline bool has_byte_order(const Format& format) {
  const Fields& fields = fields_of(format);
  return fields.n_runs > 1 || fields.runs[0].width > 1;
}

}  // namespace gguf
