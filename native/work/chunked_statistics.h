// The statistics of blocks, by several threads at once: dequant/statistics.h has the rule.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "dequant/statistics.h"
#include "work/decode_blocks.h"
#include "work/joined_work.h"

namespace gguf {

/** What statistics are of, and what they are added to. */
struct StatisticsTask {
  Format format;
  uint64_t n_blocks = 0;
  Measure measure = Measure::kAll;
  Statistics before;  // those of what comes before, if that is a whole number of chunks
  Bins bins;
  std::vector<uint64_t> counts_before;  // of the bins, then below, then above; empty without bins

  uint64_t n_elements() const { return n_blocks * format.block_elements; }
};

/** Measures chunks of kChunkNumbers. Its units are blocks. */
class ChunkedStatistics : public JoinedWork<Statistics> {
 public:
  /** `result`: where to write the StatisticsTotals. */
  ChunkedStatistics(const BlockSource& source, StatisticsTask task, double* result);

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;
  /** One that no other thread uses; null without a histogram. Throws bad_alloc. */
  std::unique_ptr<BinCounter> take_counter();
  /** Before the chunk is joined: when the last one is, all are here. Throws bad_alloc. */
  void keep_counter(std::unique_ptr<BinCounter> counter);
  /** While no other thread works. */
  void write_result() GGUF_NEEDS_NO_LOCK;

  const BlockSource source_;
  const StatisticsTask task_;
  double* const result_;
  Mutex counters_mutex_;
  /** About one for each thread. */
  std::vector<std::unique_ptr<BinCounter>> counters_ GGUF_GUARDED_BY(counters_mutex_);
  Histogram histogram_ GGUF_GUARDED_BY(counters_mutex_);
};

/** How many of at most `most` threads so many numbers are worth: one for each chunk. */
int useful_statistics_threads(uint64_t n_numbers, uint64_t most);

}  // namespace gguf
