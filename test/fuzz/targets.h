// What the fuzz targets share.
#pragma once

#include <cstdint>

#include "core/parse.h"
#include "dequant/dequant.h"

namespace gguf::fuzz {

/** As the addon tells the parser. */
inline TypeSize type_size(uint32_t type) {
  const Format* const format = find_format(type);
  return format == nullptr ? TypeSize{} : TypeSize{format->block_elements, format->block_bytes};
}

}  // namespace gguf::fuzz
