#include "work/chunked_product.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/fault_guard.h"
#include "core/mutex.h"
#include "machine/helper_threads.h"

namespace gguf {

namespace {

constexpr size_t kAlignment = 64;

/** Multiplications of one chunk: a tenth of a millisecond, after which a job can be stopped. */
constexpr uint64_t kChunkMultiplications = uint64_t{1} << 20;

/** Chunks for each thread, so that none waits long for the last. With more of them, which are shorter, a
 * product with one vector takes longer. */
constexpr uint64_t kChunksPerThread = 4;

/** A multiple of the rows that are multiplied at once, or fewer than that if these are longer than
 * kChunkBytes. */
uint64_t chunk_rows(const ProductShape& shape, int threads) {
  const uint64_t at_once = Products::rows_at_once(shape.format, shape.activations);
  if (shape.n_rows == 0) return 1;
  const uint64_t by_bytes = kChunkBytes / shape.row_bytes();
  if (by_bytes < at_once) return std::max<uint64_t>(1, by_bytes);
  const uint64_t by_work = kChunkMultiplications / (shape.columns * shape.n_vectors);
  const uint64_t rows = std::max(std::min(by_bytes, by_work) / at_once * at_once, at_once);
  if (threads <= 1) return rows;
  const uint64_t share = shape.n_rows / (kChunksPerThread * static_cast<uint64_t>(threads));
  return std::min(rows, (share / at_once + 1) * at_once);
}

/** Numbers that are packed in about 5 us: fewer are not worth another thread. */
constexpr uint64_t kPartNumbers = uint64_t{16} << 10;

using Memory = PackedVectors::Memory;

void release(Memory memory) {
  if (memory.floats != nullptr) ::operator delete(memory.floats, std::align_val_t{kAlignment});
}

/** What products gave back, for the next: at most kMost pieces of at most kMostBytes, for the whole process.
 */
class SpareMemory {
 public:
  /** Throws bad_alloc. */
  Memory take(size_t n_bytes) {
    {
      const MutexLock lock(mutex_);
      for (Memory& kept : kept_) {
        if (kept.n_bytes >= n_bytes) return std::exchange(kept, Memory());
      }
    }
    return {static_cast<float*>(::operator new(n_bytes, std::align_val_t{kAlignment})), n_bytes};
  }

  /** Keeps the largest ones, which fit the most products. */
  void give_back(Memory memory) {
    if (memory.n_bytes <= kMostBytes) {
      const MutexLock lock(mutex_);
      for (Memory& kept : kept_) {
        if (kept.n_bytes < memory.n_bytes) std::swap(kept, memory);
      }
    }
    release(memory);
  }

 private:
  static constexpr size_t kMost = 8, kMostBytes = size_t{256} << 10;
  Mutex mutex_;
  Memory kept_[kMost] GGUF_GUARDED_BY(mutex_);
};

/** Never destroyed: finalizers may still run while the process exits. */
SpareMemory& spare_memory() {
  alignas(SpareMemory) static unsigned char place[sizeof(SpareMemory)];
  static SpareMemory* const instance = new (place) SpareMemory;
  return *instance;
}

}  // namespace

uint64_t ProductShape::n_multiplications() const {
  const uint64_t per_row = columns * n_vectors;
  return per_row != 0 && n_rows > UINT64_MAX / per_row ? UINT64_MAX : n_rows * per_row;
}

PackedVectors::PackedVectors(const Products& products, const float* x, uint64_t n, int threads) {
  if (x == nullptr) return;
  const uint64_t n_packed = products.packed_floats();
  if (n_packed > SIZE_MAX / sizeof(float)) throw std::bad_alloc();
  memory_ = spare_memory().take(static_cast<size_t>(n_packed) * sizeof(float));
  const auto n_parts =
      static_cast<uint64_t>(useful_threads(n / kPartNumbers, 2 * static_cast<uint64_t>(threads)));
  if (threads <= 1 || n_parts == 1) {
    products.pack(x, memory_.floats);
    return;
  }
  std::atomic<uint64_t> next{0};
  std::vector<uint8_t> no_scratch;
  HelperThreads::shared()->run(threads - 1, no_scratch, [&](std::vector<uint8_t>&) {
    for (uint64_t part; (part = next.fetch_add(1, std::memory_order_relaxed)) < n_parts;) {
      products.pack(x, memory_.floats, part, n_parts);
    }
  });
}

PackedVectors::~PackedVectors() {
  spare_memory().give_back(memory_);
}

ChunkedRows::ChunkedRows(const BlockSource& source, const ProductShape& shape, uint64_t chunk_rows,
                         uint64_t row_elements, bool prepared)
    : ChunkedWork(shape.n_rows, chunk_rows, {row_elements, std::max<uint64_t>(1, shape.row_bytes())}),
      source_(source),
      shape_(shape),
      products_(shape.format, source.big_endian, shape.columns, shape.n_vectors, shape.activations,
                prepared) {}

Status ChunkedRows::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const uint64_t row_bytes = shape_.row_bytes(), n_bytes = count * row_bytes;
  const uint64_t at = first * row_bytes;
  const uint64_t tile_bytes = products_.scratch_floats() * sizeof(float);
  const bool reads = reads_source(first);
  const uint64_t read_bytes = reads && source_.data == nullptr ? n_bytes : 0;
  float* tile = nullptr;
  const uint8_t* rows = !reads || source_.data == nullptr ? nullptr : source_.data + at;
  if (tile_bytes + read_bytes > 0) {
    const uint64_t needed = tile_bytes + read_bytes + kAlignment;
    if (needed > SIZE_MAX) throw std::bad_alloc();
    if (scratch.size() < needed) scratch.resize(static_cast<size_t>(needed));
    const size_t misalignment = reinterpret_cast<uintptr_t>(scratch.data()) % kAlignment;
    uint8_t* const aligned = scratch.data() + (kAlignment - misalignment) % kAlignment;
    tile = reinterpret_cast<float*>(aligned);
    if (read_bytes > 0) {
      uint8_t* const read = aligned + tile_bytes;
      if (Status failure = source_.file->read(source_.offset + at, read, n_bytes)) return failure;
      rows = read;
    }
  }
  if (!reads) {
    use_rows(first, count, nullptr, tile);
    return std::nullopt;
  }
  if (source_.data != nullptr && source_.mapped_bytes > 0 && may_stream(shape_.n_rows * row_bytes)) {
    read_ahead(source_, at, n_bytes);
  }
  if (!read_mapping([&] { use_rows(first, count, rows, tile); })) return lost_mapping(source_.offset + at);
  const uint64_t row_blocks = shape_.columns / shape_.format.block_elements;
  return check_source(source_, shape_.format, first * row_blocks, (first + count) * row_blocks);
}

ChunkedProduct::ChunkedProduct(const BlockSource& source, const ProductShape& shape, const float* x,
                               int threads, float* y, const ChunkedProduct* other)
    : ChunkedRows(source, shape, chunk_rows(shape, threads), shape.n_vectors, shape.prepared != nullptr),
      shared_vectors_(vectors_of(other)),
      packed_(products_, shape_.n_results() == 0 || shared_vectors_ != nullptr ? nullptr : x,
              shape.n_vectors * shape.columns, threads) {
  set_output(y);
}

const float* ChunkedProduct::vectors_of(const ChunkedProduct* other) const {
  if (other == nullptr) return nullptr;
  const ProductShape& its = other->shape_;
  const bool same_form = its.format.index == shape_.format.index && its.columns == shape_.columns &&
                         its.n_vectors == shape_.n_vectors && its.activations == shape_.activations &&
                         (its.prepared == nullptr) == (shape_.prepared == nullptr) &&
                         other->source_.big_endian == source_.big_endian;
  if (!same_form) return nullptr;
  return other->shared_vectors_ != nullptr ? other->shared_vectors_ : other->packed_.floats();
}

/** Where prepared rows are read, unless they start within a tile. */
bool ChunkedProduct::reads_source(uint64_t first) const {
  const uint64_t at_once = Products::rows_at_once(shape_.format, shape_.activations);
  return !products_.reads_prepared() || (shape_.first_row + first) % at_once != 0;
}

void ChunkedProduct::use_rows(uint64_t first, uint64_t count, const uint8_t* rows, float* scratch) {
  const float* const prepared =
      rows == nullptr ? shape_.prepared->floats() + (shape_.first_row + first) * products_.prepared_floats()
                      : nullptr;
  products_.multiply(rows, count, shared_vectors_ != nullptr ? shared_vectors_ : packed_.floats(), scratch,
                     reinterpret_cast<float*>(output()) + first, shape_.n_rows, prepared);
}

namespace {

/** With those that the last tile lacks. */
uint64_t whole_tiles(const ProductShape& shape, uint64_t n_rows) {
  const uint64_t at_once = Products::rows_at_once(shape.format, shape.activations);
  return (n_rows + at_once - 1) / at_once * at_once;
}

}  // namespace

std::shared_ptr<PreparedRows> ChunkedPreparation::memory_for(const ProductShape& shape) {
  const Products products(shape.format, false, shape.columns, shape.n_vectors, shape.activations, true);
  const uint64_t row_bytes = products.prepared_floats() * sizeof(float);
  const uint64_t n_rows = whole_tiles(shape, shape.n_rows);
  if (row_bytes != 0 && n_rows > SIZE_MAX / row_bytes) throw std::bad_alloc();
  return std::make_shared<PreparedRows>(shape.n_rows, n_rows * row_bytes);
}

ChunkedPreparation::ChunkedPreparation(const BlockSource& source, const ProductShape& shape, int threads,
                                       std::shared_ptr<PreparedRows> prepared)
    : ChunkedRows(source, shape, whole_tiles(shape, chunk_rows(shape, threads)), shape.columns, true),
      prepared_(std::move(prepared)) {}

ChunkedPreparation::~ChunkedPreparation() {
  if (!prepared_->is_ready()) prepared_->abandon();
}

Status ChunkedPreparation::do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) {
  const Status failure = ChunkedRows::do_units(first, count, scratch);
  if (!failure) prepared_->add_finished(count);
  return failure;
}

void ChunkedPreparation::use_rows(uint64_t first, uint64_t count, const uint8_t* rows, float* scratch) {
  products_.prepare(rows, count, scratch, prepared_->floats() + first * products_.prepared_floats());
}

}  // namespace gguf
