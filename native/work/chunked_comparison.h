// The comparison of two tensors by several threads at once: dequant/comparison.h has the rule.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "dequant/comparison.h"
#include "work/chunked_work.h"
#include "work/decode_blocks.h"
#include "work/joined_work.h"

namespace gguf {

/** One of the two: blocks of a format from the beginning of a source on. */
struct ComparedBlocks {
  BlockSource source;
  Format format;

  uint64_t bytes_of(uint64_t n_numbers) const {
    return n_numbers / format.block_elements * format.block_bytes;
  }
};

/** What is compared: n_numbers numbers, whole blocks of both. */
struct ComparisonTask {
  ComparedBlocks a, b;
  uint64_t n_numbers = 0;
  Comparison before;  // of what comes before, if that is a whole number of chunks

  /** Numbers of the larger block, which is a whole number of the smaller ones. */
  uint64_t unit_numbers() const { return std::max(a.format.block_elements, b.format.block_elements); }
};

/** Compares the numbers of chunks of kChunkNumbers. Its units are blocks of the format with the larger ones.
 */
class ChunkedComparison : public JoinedWork<Comparison> {
 public:
  /** `result`: where to write the ComparisonTotals. */
  ChunkedComparison(const ComparisonTask& task, double* result);

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;
  void write_result() const;

  const ComparisonTask task_;
  double* const result_;
};

/** Finds whether the bytes of two tensors of the same format are the same; stops at the first difference. Its
 * units are blocks. */
class ChunkedByteComparison : public ChunkedWork {
 public:
  /** `result`: where to write 1 for a difference; 0 before. */
  ChunkedByteComparison(const ComparisonTask& task, double* result);

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;

  const ComparisonTask task_;
  double* const result_;
  std::atomic<bool> differ_{false};
};

}  // namespace gguf
