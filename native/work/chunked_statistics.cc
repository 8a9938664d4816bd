#include "work/chunked_statistics.h"

#include <utility>

#include "core/fault_guard.h"
#include "dequant/totals.h"
#include "work/chunk_blocks.h"

namespace gguf {

ChunkedStatistics::ChunkedStatistics(const BlockSource& source, StatisticsTask task, double* result)
    : JoinedWork(task.n_blocks, kChunkNumbers / task.format.block_elements,
                 {task.format.block_elements, task.format.block_bytes}, task.before),
      source_(source),
      task_(std::move(task)),
      result_(result),
      histogram_(task_.bins.n) {
  if (task_.bins.n > 0) histogram_.counts = task_.counts_before;
  write_result();  // of no blocks, all that will be written
}

Status ChunkedStatistics::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const ChunkBlocks chunk{source_, task_.format, first, count};
  if (scratch.size() < chunk.needed_bytes()) scratch.resize(chunk.needed_bytes());
  const uint8_t* blocks = nullptr;
  const bool reads_ahead = may_stream(task_.n_blocks * task_.format.block_bytes);
  if (Status failure = chunk.find(reads_ahead, scratch.data(), &blocks)) return failure;

  Statistics statistics;
  std::unique_ptr<BinCounter> counter = take_counter();
  const bool was_read = read_mapping([&] {
    measure_blocks(task_.format, source_.big_endian, blocks, count, task_.measure, statistics, counter.get());
  });
  if (!was_read) return lost_mapping(source_.offset + chunk.at());
  if (Status failure = chunk.check()) return failure;
  if (counter != nullptr) keep_counter(std::move(counter));
  if (join(first, count, statistics)) write_result();
  return std::nullopt;
}

std::unique_ptr<BinCounter> ChunkedStatistics::take_counter() {
  if (task_.bins.n == 0) return nullptr;
  {
    const MutexLock lock(counters_mutex_);
    if (!counters_.empty()) {
      std::unique_ptr<BinCounter> counter = std::move(counters_.back());
      counters_.pop_back();
      return counter;
    }
  }
  return std::make_unique<BinCounter>(task_.bins, task_.n_elements());
}

void ChunkedStatistics::keep_counter(std::unique_ptr<BinCounter> counter) {
  const MutexLock lock(counters_mutex_);
  if (counter->n_counted() > UINT32_MAX - kChunkNumbers) counter->add_to(histogram_);
  counters_.push_back(std::move(counter));
}

void ChunkedStatistics::write_result() {
  for (const auto& counter : counters_) counter->add_to(histogram_);
  StatisticsTotals{task_.measure, total(), task_.bins, histogram_.counts}.write(result_);
}

int useful_statistics_threads(uint64_t n_numbers, uint64_t most) {
  return useful_threads(n_numbers / kChunkNumbers + (n_numbers % kChunkNumbers != 0), most);
}

}  // namespace gguf
