// The tensor formats that can be decoded: the list of formats.def as values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gguf {

/** A format's position in the list: kQ4_K, ... */
enum FormatIndex : uint8_t {
#define FORMAT(name, id, fields) k##name,
#include "dequant/formats.def"
#undef FORMAT
  kFormatCount,
};

/** One format: a plain value, which may be copied. */
struct Format {
  const char* name = nullptr;   // "Q4_K"
  uint32_t id = 0;              // the number in the file
  uint32_t block_elements = 0;  // weights per block
  uint32_t block_bytes = 0;
  FormatIndex index = kFormatCount;  // its position in formats()
};

/** Every known format, in the order of their ids. Constant data, which exists until the process ends. */
const std::array<Format, kFormatCount>& formats();
/** The format with this number, in formats(); nullptr if the number is unknown or its format was removed. */
const Format* find_format(uint32_t id);

}  // namespace gguf
