#include "work/chunked_quantization.h"

#include <algorithm>
#include <utility>

namespace gguf {

namespace {

/** Of what a chunk has, what takes a thread about as long as it takes another thread to start with its share.
 */
constexpr uint64_t kThreadPart = 16;

/** Chunks for each thread, so that none waits long for the last. */
constexpr uint64_t kChunksPerThread = 4;

/** Units of a chunk. */
uint64_t chunk_units(const QuantizationTask& task, int threads) {
  const uint64_t unit_blocks = task.rows().blocks_at_once();
  uint64_t blocks = chunk_numbers(task.format, task.search) / task.format.block_elements;
  if (threads > 1)
    blocks = std::min(blocks, task.n_blocks / (kChunksPerThread * static_cast<uint64_t>(threads)) + 1);
  return std::max<uint64_t>(1, blocks / unit_blocks);
}

}  // namespace

int useful_quantization_threads(const QuantizationTask& task, uint64_t most) {
  const uint64_t part = chunk_numbers(task.format, task.search) / kThreadPart;
  return useful_threads(task.n_numbers() / std::max<uint64_t>(1, part), most);
}

ChunkedQuantization::ChunkedQuantization(const BlockSource& numbers, QuantizationTask task, int threads,
                                         uint8_t* dst)
    : ChunkedWork(task.n_blocks / task.rows().blocks_at_once(), chunk_units(task, threads),
                  {task.rows().blocks_at_once() * task.format.block_elements,
                   task.rows().blocks_at_once() * task.format.block_elements * sizeof(float)}),
      numbers_(numbers),
      task_(std::move(task)) {
  set_output(dst);
}

Status ChunkedQuantization::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const RowEncoding rows = task_.rows();
  const uint64_t first_block = first * rows.blocks_at_once();
  const uint64_t n_blocks = count * rows.blocks_at_once();
  const uint64_t first_number = first_block * task_.format.block_elements;
  const auto* const numbers = reinterpret_cast<const float*>(numbers_.data) + first_number;
  uint8_t* const blocks = output() + first_block * task_.format.block_bytes;
  if (Status failure = quantize_rows(rows, first_block, n_blocks, numbers, blocks, scratch)) return failure;
  return check_source(numbers_, formats()[kF32], first_number,
                      first_number + n_blocks * task_.format.block_elements);
}

}  // namespace gguf
