#include "dequant/block_fields.h"

#include <cstring>

#include "dequant/blocks.h"

namespace gguf {
namespace {

#define FORMAT(name, id, fields)                                   \
  static_assert(Fields(fields).block_bytes == sizeof(Block##name), \
                "the fields of " #name " do not match its struct");
#include "dequant/formats.def"
#undef FORMAT

constexpr Fields kFields[] = {
#define FORMAT(name, id, fields) Fields(fields),
#include "dequant/formats.def"
#undef FORMAT
};

template <size_t Width>
void swap_numbers(const uint8_t* src, size_t count, uint8_t* dst) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < Width; ++k) dst[i * Width + k] = src[i * Width + Width - 1 - k];
  }
}

void swap_run(size_t width, const uint8_t* src, size_t count, uint8_t* dst) {
  switch (width) {
    case 2:
      return swap_numbers<2>(src, count, dst);
    case 4:
      return swap_numbers<4>(src, count, dst);
    case 8:
      return swap_numbers<8>(src, count, dst);
    default:
      std::memcpy(dst, src, count);
  }
}

}  // namespace

const Fields& fields_of(const Format& format) {
  return kFields[format.index];
}

void swap_blocks(const Fields& fields, const uint8_t* src, size_t n_blocks, uint8_t* dst) {
  if (fields.n_runs == 1) {  // numbers only: one run for all blocks
    return swap_run(fields.runs[0].width, src, n_blocks * fields.runs[0].count, dst);
  }
  for (size_t b = 0; b < n_blocks; ++b) {
    for (int r = 0; r < fields.n_runs; ++r) {
      const Fields::Run& run = fields.runs[r];
      swap_run(run.width, src, run.count, dst);
      src += run.width * run.count;
      dst += run.width * run.count;
    }
  }
}

}  // namespace gguf
