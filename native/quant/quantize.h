// From numbers to block bytes, with the best instruction set of this machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "quant/encoders.h"

namespace gguf {

/** Of a format without an encoder, that none exists. */
const EncoderFacts& encoder_facts(const Format& format);

/** Whether numbers can be turned into blocks of this format. */
bool can_quantize(const Format& format);

/** Whether only with the importance of columns, as in ggml. */
bool needs_importance(const Format& format);

/** Numbers that take about a tenth of a millisecond to encode. */
uint64_t chunk_numbers(const Format& format, Search search);

/**
 * Turns `n_blocks * format.block_elements` numbers at `x` into blocks at `dst`: see EncodeBlocks for what it
 * asks for. The bytes are the same on every machine, with Search::kGgml those of ggml's reference. Only for a
 * format that can_quantize, with importance if it needs_importance. Thread-safe, never fails.
 */
void quantize(const Format& format, const float* x, const float* importance, uint64_t n_blocks, uint8_t* dst,
              Search search = Search::kGgml) noexcept;

/** What the rows of a matrix become. */
struct RowEncoding {
  Format format;
  uint64_t columns = 0;               // numbers of a row: whole blocks; not 0
  const float* importance = nullptr;  // a weight for each column, finite and not negative; or nullptr
  Search search = Search::kGgml;

  /** So many blocks have to be encoded at once: one, or a row. */
  uint64_t blocks_at_once() const;
};

/**
 * Encodes `n_blocks` blocks of the rows, from block `first_block` on, whose numbers are at `x`, to `dst`: a
 * multiple of blocks_at_once(), as `first_block` is. kRange where a block would hold a number that is not
 * finite: then what was before it is encoded. Other threads may change the numbers meanwhile. `scratch` grows
 * as needed. Throws bad_alloc.
 */
Status quantize_rows(const RowEncoding& rows, uint64_t first_block, uint64_t n_blocks, const float* x,
                     uint8_t* dst, std::vector<uint8_t>& scratch);

}  // namespace gguf
