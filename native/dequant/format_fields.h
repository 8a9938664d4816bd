// The fields inside a format's blocks: what only big-endian files need to know.
#pragma once

#include "dequant/byte_order.h"
#include "dequant/dequant.h"

namespace gguf {

/** `format` is one of formats(). */
const Fields& fields_of(const Format& format);

}  // namespace gguf
