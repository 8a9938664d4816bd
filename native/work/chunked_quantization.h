// Numbers to blocks, by several threads at once.
#pragma once

#include <cstdint>
#include <vector>

#include "quant/quantize.h"
#include "work/chunked_work.h"
#include "work/decode_blocks.h"

namespace gguf {

/** What is encoded. */
struct QuantizationTask {
  Format format;
  uint64_t columns = 0;           // numbers of a row: whole blocks; not 0
  uint64_t n_blocks = 0;          // whole rows
  std::vector<float> importance;  // a weight for each column, finite and not negative; or empty
  Search search = Search::kGgml;

  uint64_t n_numbers() const { return n_blocks * format.block_elements; }
  RowEncoding rows() const {
    return {format, columns, importance.empty() ? nullptr : importance.data(), search};
  }
};

/** How many of at most `most` threads so many numbers are worth. */
int useful_quantization_threads(const QuantizationTask& task, uint64_t most);

/** Encodes chunks of about a tenth of a millisecond. Its units are what has to be encoded at once. */
class ChunkedQuantization : public ChunkedWork {
 public:
  /** `numbers`: in memory, or in a mapped file; aligned, little-endian. `threads`: how many will work. `dst`
   * may be null until set_output() is called. */
  ChunkedQuantization(const BlockSource& numbers, QuantizationTask task, int threads, uint8_t* dst);

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;

  const BlockSource numbers_;
  const QuantizationTask task_;
};

}  // namespace gguf
