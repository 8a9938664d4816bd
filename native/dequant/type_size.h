// The sizes of the formats, for the parser of headers.
#pragma once

#include <cstdint>

#include "core/parse.h"
#include "dequant/formats.h"

namespace gguf {

inline TypeSize type_size(uint32_t type) {
  const Format* const format = find_format(type);
  return format == nullptr ? TypeSize{} : TypeSize{format->block_elements, format->block_bytes};
}

}  // namespace gguf
