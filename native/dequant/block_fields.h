// The fields inside the blocks of each format, and swapping their byte order. Only big-endian files need it:
// their numbers become little-endian before a kernel sees them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dequant/formats.h"

namespace gguf {

/** The fields of a block in file order, read from a text of formats.def: "2H 16B" is two numbers of 2 bytes,
   then 16 single bytes. */
struct Fields {
  struct Run {
    size_t width = 0;  // bytes of a number
    size_t count = 0;
  };
  static constexpr int kMaxRuns = 4;

  Run runs[kMaxRuns] = {};
  int n_runs = 0;
  size_t block_bytes = 0;

  constexpr explicit Fields(const char* text) {
    size_t count = 0;
    for (; *text != '\0'; ++text) {
      if (*text >= '0' && *text <= '9') {
        count = 10 * count + static_cast<size_t>(*text - '0');
      } else if (*text != ' ') {
        Run& run = runs[n_runs++];
        run.width = *text == 'B' ? 1 : *text == 'H' ? 2 : *text == 'W' ? 4 : 8;
        run.count = count == 0 ? 1 : count;
        block_bytes += run.width * run.count;
        count = 0;
      }
    }
  }
};

const Fields& fields_of(const Format& format);

/** Whether there are numbers of more than one byte in its blocks. */
inline bool has_byte_order(const Format& format) {
  const Fields& fields = fields_of(format);
  return fields.n_runs > 1 || fields.runs[0].width > 1;
}

/** Copies `n_blocks` blocks from `src` to `dst`, reversing the bytes of every number in them. */
void swap_blocks(const Fields& fields, const uint8_t* src, size_t n_blocks, uint8_t* dst);

}  // namespace gguf
