#include "work/chunked_comparison.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/fault_guard.h"
#include "dequant/statistics.h"
#include "dequant/totals.h"
#include "work/chunk_blocks.h"

namespace gguf {
namespace {

/** The two chunks with numbers `first` to `first + count - 1`. */
struct ChunkPair {
  ChunkBlocks a, b;

  ChunkPair(const ComparisonTask& task, uint64_t first, uint64_t count)
      : a(of(task.a, first, count)), b(of(task.b, first, count)) {}

  /** Calls `use` with the blocks of both. */
  template <class Use>
  Status use(bool reads_ahead, std::vector<uint8_t>& scratch, Use use) const {
    const size_t needed = a.needed_bytes() + b.needed_bytes();
    if (scratch.size() < needed) scratch.resize(needed);
    const uint8_t *of_a = nullptr, *of_b = nullptr;
    if (Status failure = a.find(reads_ahead, scratch.data(), &of_a)) return failure;
    if (Status failure = b.find(reads_ahead, scratch.data() + a.needed_bytes(), &of_b))
      return other(std::move(failure));
    const void* lost_at = nullptr;
    if (!read_mapping([&] { use(of_a, of_b); }, &lost_at)) {
      const bool is_of_b =
          reinterpret_cast<uintptr_t>(lost_at) - reinterpret_cast<uintptr_t>(of_b) < b.n_bytes();
      if (is_of_b) return other(lost_mapping(b.source.offset + b.at()));
      return lost_mapping(a.source.offset + a.at());
    }
    if (Status failure = a.check()) return failure;
    return other(b.check());
  }

 private:
  /** A failure that is about the second of the two. */
  static Status other(Status failure) {
    if (failure) failure->of_other = true;
    return failure;
  }
  static ChunkBlocks of(const ComparedBlocks& side, uint64_t first, uint64_t count) {
    return {side.source, side.format, first / side.format.block_elements, count / side.format.block_elements};
  }
};

/** Whether both are more than stays in the cache. */
bool is_large(const ComparisonTask& task) {
  return may_stream(task.a.bytes_of(task.n_numbers));
}

}  // namespace

ChunkedComparison::ChunkedComparison(const ComparisonTask& task, double* result)
    : JoinedWork(
          task.n_numbers / task.unit_numbers(), kChunkNumbers / task.unit_numbers(),
          {task.unit_numbers(), task.a.bytes_of(task.unit_numbers()), task.b.bytes_of(task.unit_numbers())},
          task.before),
      task_(task),
      result_(result) {
  write_result();  // of no numbers, all that will be written
}

Status ChunkedComparison::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const uint64_t n_numbers = count * task_.unit_numbers();
  const ChunkPair chunk(task_, first * task_.unit_numbers(), n_numbers);
  Comparison comparison;
  const auto compare = [&](const uint8_t* a, const uint8_t* b) {
    compare_blocks({task_.a.format, task_.a.source.big_endian, a},
                   {task_.b.format, task_.b.source.big_endian, b}, n_numbers, comparison);
  };
  if (Status failure = chunk.use(is_large(task_), scratch, compare)) return failure;
  if (join(first, count, comparison)) write_result();
  return std::nullopt;
}

void ChunkedComparison::write_result() const {
  ComparisonTotals{total()}.write(result_);
}

ChunkedByteComparison::ChunkedByteComparison(const ComparisonTask& task, double* result)
    : ChunkedWork(task.n_numbers / task.a.format.block_elements,
                  std::max<uint64_t>(1, kChunkBytes / task.a.format.block_bytes),
                  {task.a.format.block_elements, task.a.format.block_bytes, task.b.format.block_bytes}),
      task_(task),
      result_(result) {
  *result = 0;
}

Status ChunkedByteComparison::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const uint64_t elements = task_.a.format.block_elements;
  const ChunkPair chunk(task_, first * elements, count * elements);
  bool differ = false;
  const auto compare = [&](const uint8_t* a, const uint8_t* b) {
    differ = std::memcmp(a, b, to_size(chunk.a.n_bytes())) != 0;
  };
  if (Status failure = chunk.use(is_large(task_), scratch, compare)) return failure;
  if (differ && !differ_.exchange(true, std::memory_order_relaxed)) {
    *result_ = 1;
    stop();
  }
  return std::nullopt;
}

}  // namespace gguf
