// The kernels, over memory that the caller has allocated.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "dequant/block_fields.h"
#include "dequant/comparison.h"
#include "dequant/dequant.h"
#include "dequant/formats.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/products.h"
#include "dequant/statistics.h"
#include "dequant/totals.h"
#include "quant/quantize.h"
#include "wasm/module.h"
#include "wasm/reply.h"

namespace gguf {

namespace {

const Format& format_of(uint32_t type) {
  const Format* const format = find_format(type);
  if (format == nullptr) __builtin_trap();
  return *format;
}

Search search_of(bool best) {
  return best ? Search::kBest : Search::kGgml;
}

/** Memory for floats, aligned to a cache line. */
class Floats {
 public:
  explicit Floats(uint64_t n) {
    constexpr size_t kAlignment = 64;
    uint64_t n_bytes;
    if (!multiply_below(SIZE_MAX, n, sizeof(float), n_bytes) || !round_up(n_bytes, kAlignment, n_bytes)) {
      out_of_memory();
    }
    memory_ = static_cast<float*>(std::aligned_alloc(kAlignment, to_size(n_bytes)));
    if (memory_ == nullptr && n_bytes != 0) out_of_memory();
  }
  ~Floats() { std::free(memory_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  float* get() { return memory_; }

 private:
  float* memory_;
};

/** Products with the memory that they work in: threads that share it have scratch of their own. */
struct PackedProducts {
  Products products;
  Floats packed, scratch;

  PackedProducts(const Products& of, uint32_t n_threads)
      : products(of), packed(of.packed_floats()), scratch(of.scratch_floats() * n_threads) {}
};

}  // namespace

/** Columns: the names, separated by spaces; of each format its number, weights and bytes of a block, whether
 * it can be encoded, and whether only with importance. */
GGUF_EXPORT("formats") const Reply* module_formats() {
  std::string names;
  std::vector<uint32_t> numbers;
  for (const Format& format : formats()) {
    if (!names.empty()) names += ' ';
    names += format.name;
    numbers.insert(numbers.end(), {format.id, format.block_elements, format.block_bytes, can_quantize(format),
                                   needs_importance(format)});
  }
  Reply* const reply = new Reply;
  reply->add(std::move(names));
  reply->add(std::move(numbers));
  return reply;
}

GGUF_EXPORT("dequantize")
void module_dequantize(uint32_t type, uint32_t out, bool big_endian, const uint8_t* blocks, uint32_t n_blocks,
                       void* numbers) {
  dequantize(format_of(type), static_cast<Out>(out), Store::kPlain, big_endian, blocks, n_blocks, numbers);
}

/** Whether the kernels without SIMD are used: for tests and benchmarks. */
GGUF_EXPORT("use_scalar") void module_use_scalar(bool scalar) {
  use_isa(scalar ? available_isas().back() : available_isas().front());
}

/** Products of levels with several vectors use these functions of the table, of relaxed/tiles.cc; 0: no
 * longer. */
GGUF_EXPORT("use_tiles") void module_use_tiles(CodeTileMultiplier of_16, CodeTileMultiplier of_32) {
  use_relaxed_tiles(of_16, of_32);
}

/** `Products` with n vectors of `columns` numbers, rounded to 8 bits or not, and memory for so many threads.
 */
GGUF_EXPORT("new_products")
PackedProducts* module_new_products(uint32_t type, bool big_endian, double columns, uint32_t n, bool int8,
                                    uint32_t n_threads) {
  const Products products(format_of(type), big_endian, static_cast<uint64_t>(columns), n,
                          int8 ? Activations::kInt8 : Activations::kFloat32);
  return new PackedProducts(products, n_threads);
}

/** Parts `first` to `end` of n_parts. Threads do parts at the same time: nothing is allocated here. */
GGUF_EXPORT("products_pack")
void module_products_pack(PackedProducts* products, const float* x, uint32_t n_parts, uint32_t first,
                          uint32_t end) {
  for (; first < end; ++first) products->products.pack(x, products->packed.get(), first, n_parts);
}

/** Product v of row r goes to y[v * y_stride + r]. Threads do rows of their own, likewise. */
GGUF_EXPORT("products_multiply")
void module_products_multiply(PackedProducts* products, const uint8_t* rows, uint32_t n_rows, float* y,
                              uint32_t y_stride, uint32_t thread) {
  float* const scratch = products->scratch.get() + thread * products->products.scratch_floats();
  products->products.multiply(rows, n_rows, products->packed.get(), scratch, y, y_stride);
}

GGUF_EXPORT("free_products") void module_free_products(const PackedProducts* products) {
  delete products;
}

/**
 * Joins the statistics of blocks to the StatisticsTotals in n_fields numbers at `fields`. What comes before
 * is a whole number of chunks.
 */
GGUF_EXPORT("measure")
const Reply* module_measure(uint32_t type, bool big_endian, const uint8_t* blocks, uint32_t n_blocks,
                            double* fields, uint32_t n_fields) {
  Result<StatisticsTotals> read = StatisticsTotals::read(fields, n_fields);
  if (!read.ok()) return new Reply(read.error());
  StatisticsTotals& totals = read.value();
  const Format& format = format_of(type);
  const auto chunk_blocks = static_cast<uint32_t>(kChunkNumbers / format.block_elements);
  BinCounter counter(totals.bins, uint64_t{n_blocks} * format.block_elements);
  Histogram histogram(totals.bins.n);
  for (uint32_t first = 0; first < n_blocks; first += chunk_blocks) {
    Statistics chunk;
    measure_blocks(format, big_endian, blocks + first * size_t{format.block_bytes},
                   std::min(chunk_blocks, n_blocks - first), totals.measure, chunk,
                   totals.bins.n == 0 ? nullptr : &counter);
    totals.statistics.join(chunk);
  }
  if (totals.bins.n != 0) {
    histogram.counts = std::move(totals.counts);
    counter.add_to(histogram);
    totals.counts = std::move(histogram.counts);
  }
  totals.write(fields);
  return new Reply;
}

/** Joins the comparison of n_numbers numbers to the ComparisonTotals at `fields`, likewise. */
GGUF_EXPORT("compare")
const Reply* module_compare(uint32_t type_a, bool big_endian_a, const uint8_t* a, uint32_t type_b,
                            bool big_endian_b, const uint8_t* b, uint32_t n_numbers, double* fields,
                            uint32_t n_fields) {
  Result<ComparisonTotals> read = ComparisonTotals::read(fields, n_fields);
  if (!read.ok()) return new Reply(read.error());
  ComparisonTotals& totals = read.value();
  const Format &format_a = format_of(type_a), &format_b = format_of(type_b);
  const auto part = [](const Format& format, const uint8_t* blocks, uint32_t first) {
    return blocks + first / format.block_elements * size_t{format.block_bytes};
  };
  for (uint32_t first = 0; first < n_numbers; first += kChunkNumbers) {
    Comparison chunk;
    compare_blocks({format_a, big_endian_a, part(format_a, a, first)},
                   {format_b, big_endian_b, part(format_b, b, first)},
                   std::min<uint32_t>(kChunkNumbers, n_numbers - first), chunk);
    totals.comparison.join(chunk);
  }
  totals.write(fields);
  return new Reply;
}

/** How many numbers to encode in one step: whole units of what has to be encoded at once. */
GGUF_EXPORT("quantize_step")
double module_quantize_step(uint32_t type, double columns, bool has_importance, bool best) {
  const Format& format = format_of(type);
  const float some = 0;
  const RowEncoding rows{format, static_cast<uint64_t>(columns), has_importance ? &some : nullptr,
                         search_of(best)};
  const uint64_t at_once = rows.blocks_at_once() * format.block_elements;
  const uint64_t chunk = chunk_numbers(format, search_of(best));
  return static_cast<double>(std::max<uint64_t>(chunk / at_once, 1) * at_once);
}

/** Of rows of so many columns, the blocks from number `first_block` on. */
GGUF_EXPORT("quantize")
Reply* module_quantize(uint32_t type, double columns, const float* importance, bool best, double first_block,
                       const float* numbers, uint32_t n_blocks, uint8_t* blocks) {
  const RowEncoding rows{format_of(type), static_cast<uint64_t>(columns), importance, search_of(best)};
  std::vector<uint8_t> scratch;
  const Status failure =
      quantize_rows(rows, static_cast<uint64_t>(first_block), n_blocks, numbers, blocks, scratch);
  return failure ? new Reply(*failure) : new Reply;
}

/** The same blocks in the other byte order. */
GGUF_EXPORT("swap")
void module_swap(uint32_t type, const uint8_t* blocks, uint32_t n_blocks, uint8_t* swapped) {
  swap_blocks(fields_of(format_of(type)), blocks, n_blocks, swapped);
}

}  // namespace gguf
