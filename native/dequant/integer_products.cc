#include "dequant/integer_products.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "dequant/blocks.h"
#include "dequant/isa/kernel_table.h"
#include "dequant/kernel_blocks.h"
#include "dequant/levels.h"

namespace gguf {
namespace {

constexpr uint64_t round_up(uint64_t n, uint64_t unit) {
  return (n + unit - 1) / unit * unit;
}

constexpr uint64_t kPartialSums = 16;

/** Columns of a row that are unpacked at a time. Of shorter rows, several are: see rows_at_once. */
constexpr uint64_t kPart = 512, kMostAtOnce = 2048;
/** Columns that a tile takes of a row: with 16 rows, what stays in the second-level cache. */
constexpr uint64_t kSegment = 4096;
static_assert(kPart % (32 * kPartialSums) == 0 && kSegment % kPart == 0, "parts start with the first sum");

/** Of rows that are multiplied with a few vectors, one after the other. */
constexpr uint64_t kCachedBytes = uint64_t{64} << 10;

/** An unpacker may write to the end of a group of blocks. */
constexpr uint64_t kGroupNumbers = 512;
/** No format has more bytes for so many numbers. */
constexpr uint64_t kMostRewrittenBytes = 2 * kMostAtOnce;

/** One, or up to kMostAtOnce numbers, in whole groups where that is possible: an unpacker copies a group that
 * is short. */
uint64_t rows_at_once(uint64_t columns) {
  const uint64_t most = kMostAtOnce / columns, unit = kGroupNumbers / std::gcd(columns, kGroupNumbers);
  return most < unit ? std::max<uint64_t>(most, 1) : most / unit * unit;
}

/** Cuts memory into pieces, each of which starts a cache line. Without memory, it only counts. */
class Cutter {
 public:
  explicit Cutter(float* memory) : memory_(memory) {}
  float* floats(uint64_t n) {
    float* const piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(n, 16);
    return piece;
  }
  uint8_t* bytes(uint64_t n) { return reinterpret_cast<uint8_t*>(floats(round_up(n, 4) / 4)); }
  uint64_t used() const { return used_; }

 private:
  float* memory_;
  uint64_t used_ = 0;
};

/** Rounds vectors, a few runs at a time, and calls use(run of 32, rounded). */
template <class Use>
void for_each_rounded_run(Rounder round, const float* x, uint64_t columns, Use use) {
  constexpr uint64_t kAtOnce = 16;
  RoundedRun rounded[kAtOnce];
  const uint64_t n_runs = columns / RoundedRun::kColumns;
  for (uint64_t first = 0; first < n_runs; first += kAtOnce) {
    const uint64_t n = std::min(kAtOnce, n_runs - first);
    round(x + first * RoundedRun::kColumns, n, rounded);
    for (uint64_t i = 0; i < n; ++i) use(first + i, rounded[i]);
  }
}

/** The codes of a run of weights, and what is added for it. */
struct PackedRun {
  const int8_t* codes;
  float scale;
  uint8_t addend[4];  // an offset, or a correction
};

PackedRun packed_run(const RoundedRun& rounded, uint64_t run, uint64_t half, bool affine, int bias) {
  PackedRun packed{rounded.codes + 16 * half, rounded.scale, {}};
  const int32_t sum = run == 16 ? rounded.sums[half] : rounded.sums[0] + rounded.sums[1];
  const float offset = rounded.scale * static_cast<float>(sum);
  const int32_t correction = -bias * sum;
  std::memcpy(packed.addend, affine ? static_cast<const void*>(&offset) : &correction, 4);
  return packed;
}

/** Where the runs of a segment are, in the order in which a tile takes them. */
class RunOrder {
 public:
  explicit RunOrder(uint64_t n_runs) {
    uint64_t start = 0;
    for (const uint64_t sum : kSumOrder) {
      start_[sum] = start;
      start += n_runs / kPartialSums + (sum < n_runs % kPartialSums ? 1 : 0);
    }
  }
  uint64_t position(uint64_t run) const { return start_[run % kPartialSums] + run / kPartialSums; }

 private:
  uint64_t start_[kPartialSums];
};

}  // namespace

const KernelTable& kernels_for_products(const KernelTable& kernels, const Format& format, uint64_t columns,
                                        uint64_t n) {
  if (kernels.base == nullptr) return kernels;
  if (n < kernels.n_wanted || columns < kernels.columns_wanted) return *kernels.base;
  const CodeFacts facts = kernels.formats[format.index].code_facts();
  const CodeTileMultipliers& tiles = kernels.level_tiles.of[facts.run == 16 ? 0 : 1][facts.kind];
  const bool is_special = tiles.of[1] != nullptr && (kernels.is_ready == nullptr || kernels.is_ready());
  return is_special ? kernels : *kernels.base;
}

IntegerProducts::IntegerProducts(const Format& format, bool big_endian, uint64_t columns, uint64_t n,
                                 bool prepared) noexcept
    : IntegerProducts(format, big_endian, columns, n,
                      kernels_for_products(active_kernels(), format, columns, n), prepared) {
  const KernelTable& of_prepared = kernels_for_products(active_kernels(), format, columns, kPreparedVectors);
  if (&kernels_ != &of_prepared) reads_prepared_ = false;
}

IntegerProducts::IntegerProducts(const Format& format, bool big_endian, uint64_t columns, uint64_t n,
                                 const KernelTable& kernels, bool prepared) noexcept
    : format_(format),
      kernels_(kernels),
      big_endian_(big_endian),
      rewrites_(needs_rewriting(format, big_endian)),
      columns_(columns),
      n_(n) {
  const FormatKernels& of_format = kernels_.formats[format.index];
  const CodeFacts facts = of_format.code_facts();
  run_ = static_cast<uint64_t>(facts.run);
  affine_ = facts.affine;
  kind_ = facts.kind;
  level_bytes_ = static_cast<uint64_t>(facts.level_bytes);
  transposes_levels_ = of_format.transpose_levels != nullptr;
  part_ = transposes_levels_ ? kSegment : kPart;
  narrows_ = facts.kind == kernels_.level_tiles.narrow_kind;
  tile_bytes_ = narrows_ ? 1 : level_bytes_;
  const uint64_t row_bytes = columns / format.block_elements * format.block_bytes;
  // Prepared rows save unpacking; but larger ones take longer to come from memory than two vectors do.
  const bool is_larger = 2 * prepared_floats() * sizeof(float) > 3 * row_bytes;
  const uint64_t most_dots = !prepared ? of_format.most_dots : is_larger ? 2 : 1;
  uses_dots_ = of_format.multiply_codes != nullptr && n <= std::min(most_dots, of_format.most_dots);
  reads_prepared_ = prepared && !uses_dots_;
  if (n > 0) {
    const auto most = static_cast<uint64_t>(kernels_.level_tiles.vectors);
    tiles_.n = (n + most - 1) / most;
    tiles_.vectors = n / tiles_.n;
    tiles_.n_larger = n % tiles_.n;
  }
  bias_ = uses_dots_ ? facts.bias : !narrows_ ? facts.stored_bias : affine_ ? 0 : kNarrowBias;
}

uint64_t IntegerProducts::packed_floats() const noexcept {
  return n_ * (uses_dots_ ? dot_floats() : runs_in(columns_) * run_bytes() / 4);
}

/** Of a vector that is packed for dots: whole cache lines. */
uint64_t IntegerProducts::dot_floats() const {
  return round_up(runs_in(repeated_columns()) * (run_ + 8) / 4, 16);
}

/** Of a packed vector, where a tile takes it: its numbers, the scale and what is added. */
uint64_t IntegerProducts::run_bytes() const {
  return run_ * tile_bytes_ + 8;
}

/** Columns of one packed vector: see RoundedVector. */
uint64_t IntegerProducts::repeated_columns() const {
  return format_.block_elements < 256 ? columns_ + kGroupNumbers : columns_;
}

void IntegerProducts::pack(const float* x, float* packed, uint64_t part, uint64_t n_parts) const noexcept {
  const uint64_t n = uses_dots_ ? n_ : tiles_.n, first = n * part / n_parts, end = n * (part + 1) / n_parts;
  if (uses_dots_) {
    for (uint64_t v = first; v < end; ++v) pack_for_dots(x + v * columns_, packed + v * dot_floats());
  } else if (run_ == 16) {
    tile_bytes_ == 1 ? pack_for_tiles<16, int8_t>(x, packed, first, end)
                     : pack_for_tiles<16, int16_t>(x, packed, first, end);
  } else {
    tile_bytes_ == 1 ? pack_for_tiles<32, int8_t>(x, packed, first, end)
                     : pack_for_tiles<32, int16_t>(x, packed, first, end);
  }
}

/** All codes, as RoundedVector has them, then all scales, then what is added. */
void IntegerProducts::pack_for_dots(const float* x, float* packed) const {
  const uint64_t n_columns = repeated_columns(), n_runs = runs_in(n_columns);
  auto* const codes = reinterpret_cast<uint8_t*>(packed);
  uint8_t *const scales = codes + n_columns, *const addends = scales + 4 * n_runs;
  const uint64_t n_halves = RoundedRun::kColumns / run_;
  constexpr uint64_t kHalf = RoundedRun::kColumns / 2;
  const uint64_t last = n_halves == 1 ? n_columns / 2 : kHalf, step = n_halves * kHalf;
  for_each_rounded_run(kernels_.round_runs, x, columns_, [&](uint64_t i, const RoundedRun& rounded) {
    std::memcpy(codes + step * i, rounded.codes, kHalf);
    std::memcpy(codes + last + step * i, rounded.codes + kHalf, kHalf);
    for (uint64_t half = 0; half < n_halves; ++half) {
      const PackedRun run = packed_run(rounded, run_, half, affine_, bias_);
      const uint64_t at = 4 * (i * n_halves + half);
      std::memcpy(scales + at, &run.scale, 4);
      std::memcpy(addends + at, run.addend, 4);
    }
  });
  const auto repeat = [](uint8_t* bytes, uint64_t n, uint64_t end) {
    for (uint64_t at = n; at < end; at += n) {
      std::memcpy(bytes + at, bytes, static_cast<size_t>(std::min(n, end - at)));
    }
  };
  if (n_halves == 1) {
    repeat(codes, columns_ / 2, n_columns / 2);
    repeat(codes + last, columns_ / 2, n_columns / 2);
  } else {
    repeat(codes, columns_, n_columns);
  }
  repeat(scales, 4 * runs_in(columns_), 4 * n_runs);
  repeat(addends, 4 * runs_in(columns_), 4 * n_runs);
}

template <uint64_t kRun, class Number>
void IntegerProducts::pack_for_tiles(const float* x, float* packed, uint64_t tile, uint64_t end) const {
#if defined(__aarch64__) || defined(_M_ARM64)
  constexpr uint64_t kLongWord = 8;  // of neon_i8mm
#else
  constexpr uint64_t kLongWord = kRun * sizeof(Number);  // of AMX
#endif
  if (kernels_.level_tiles.word_bytes == 4) {
    pack_words<kRun, 4, Number>(x, packed, tile, end);
  } else {
    pack_words<kRun, kLongWord, Number>(x, packed, tile, end);
  }
}

/** The vectors of a tile; of these, a segment of columns; of this, the runs as CodeTile has them, in words of
 * kWord bytes. */
template <uint64_t kRun, uint64_t kWord, class Number>
void IntegerProducts::pack_words(const float* x, float* packed, uint64_t tile, uint64_t end) const {
  constexpr uint64_t kHalves = RoundedRun::kColumns / kRun, kBytes = kRun * sizeof(Number);
  for (; tile < end; ++tile) {
    const uint64_t v = tiles_.first_vector(tile), n_vectors = tiles_.n_vectors(tile);
    const uint64_t n_bytes = n_vectors * run_bytes();
    uint8_t* to = reinterpret_cast<uint8_t*>(packed) + v * (columns_ / kRun) * run_bytes();
    for (uint64_t start = 0; start < columns_; start += kSegment) {
      const uint64_t n_columns = std::min(kSegment, columns_ - start), n_runs = n_columns / kRun;
      const RunOrder order(n_runs);
      for (uint64_t k = 0; k < n_vectors; ++k) {
        const float* const vector = x + (v + k) * columns_ + start;
        for_each_rounded_run(
            kernels_.round_runs, vector, n_columns, [&](uint64_t r, const RoundedRun& rounded) {
              for (uint64_t half = 0; half < kHalves; ++half) {
                const PackedRun run = packed_run(rounded, kRun, half, affine_, bias_);
                uint8_t* const at = to + order.position(r * kHalves + half) * n_bytes;
                Number numbers[kRun];
                for (uint64_t i = 0; i < kRun; ++i) numbers[i] = run.codes[i];
                for (uint64_t i = 0; i < kBytes; i += kWord) {
                  std::memcpy(at + kWord * k + n_vectors * i, numbers + i / sizeof(Number), kWord);
                }
                std::memcpy(at + n_vectors * kBytes + 4 * k, &run.scale, 4);
                std::memcpy(at + n_vectors * (kBytes + 4) + 4 * k, run.addend, 4);
              }
            });
      }
      to += n_runs * n_bytes;
    }
  }
}

/** Unpacks blocks; by way of `rewritten` those that kernels cannot read, where fill has not written them as
 * they can. */
void IntegerProducts::unpack(Unpacker unpack, const uint8_t* blocks, uint64_t n_blocks, uint8_t* rewritten,
                             const UnpackedCodes& to) const {
  const bool rewrites = rewrites_ && !transposes_levels_;
  if (rewrites) n_blocks = rewrite_blocks(format_, big_endian_, blocks, n_blocks, rewritten);
  unpack(rewrites ? rewritten : blocks, n_blocks, to);
}

void IntegerProducts::multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch,
                               float* y, uint64_t y_stride, const float* prepared) const noexcept {
  if (n_ == 0 || n_rows == 0) return;
  if (uses_dots_) {
    multiply_dots(rows, n_rows, packed, scratch, y, y_stride);
  } else {
    multiply_tiles(rows, n_rows, packed, scratch, y, y_stride, prepared);
  }
}

/** A vector as pack_for_dots has written it. */
RoundedVector IntegerProducts::rounded_vector(const float* packed) const {
  const uint64_t n_columns = repeated_columns();
  const auto* const codes = reinterpret_cast<const int8_t*>(packed);
  const float *const scales = packed + n_columns / 4, *const addends = scales + runs_in(n_columns);
  return {codes, codes + n_columns / 2, scales, addends, reinterpret_cast<const int32_t*>(addends)};
}

/** Rows that stay in the cache are multiplied with one or two vectors after the others. */
void IntegerProducts::multiply_dots(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch,
                                    float* y, uint64_t y_stride) const {
  const FormatKernels& of_format = kernels_.formats[format_.index];
  const CodeMultiplier multiply_two = columns_ % 256 == 0 ? of_format.multiply_two : nullptr;
  const uint64_t row_blocks = columns_ / format_.block_elements, row_bytes = row_blocks * format_.block_bytes;
  auto* const rewritten = reinterpret_cast<uint8_t*>(scratch);
  const uint64_t n_at_once = rewrites_ ? 1
                             : n_ == 1 ? n_rows
                                       : std::max<uint64_t>(kCachedBytes / row_bytes, 1);
  while (n_rows > 0) {
    const uint64_t n = std::min(n_rows, n_at_once);
    if (rewrites_) rewrite_blocks(format_, big_endian_, rows, row_blocks, rewritten);
    for (uint64_t v = 0; v < n_;) {
      const bool are_two = multiply_two != nullptr && v + 1 < n_;
      const RoundedVector x[2] = {
          rounded_vector(packed + v * dot_floats()),
          are_two ? rounded_vector(packed + (v + 1) * dot_floats()) : RoundedVector{}};
      (are_two ? multiply_two : of_format.multiply_codes)(rewrites_ ? rewritten : rows, n, columns_, x,
                                                          y + v * y_stride, y_stride);
      v += are_two ? 2 : 1;
    }
    rows += n * row_bytes;
    y += n;
    n_rows -= n;
  }
}

/** Some columns of the rows of a tile, as CodeTile has them. */
struct IntegerProducts::TileRows {
  uint8_t* w;
  float *scales, *minima;
};

/** What the scratch of tiles is cut into. */
struct IntegerProducts::TileMemory {
  // Rows as they are unpacked, `stride` numbers apart.
  uint64_t stride;
  UnpackedCodes rows;
  uint8_t* rewritten;
  TileRows filled;
  float* sums;
  uint64_t tile_sums;  // of a tile of vectors
  uint64_t n_floats;
};

IntegerProducts::TileMemory IntegerProducts::tile_memory(float* scratch) const {
  const auto n_rows = static_cast<uint64_t>(kernels_.level_tiles.rows),
             n_vectors = static_cast<uint64_t>(kernels_.level_tiles.vectors);
  const uint64_t n_columns = std::min(columns_, kSegment), n_runs = round_up(runs_in(n_columns), 4);
  Cutter cutter(scratch);
  TileMemory memory{};
  // Not a power of two, for rows that are not driven out of the cache by each other.
  memory.stride = columns_ > part_ ? part_ + 64 : columns_;
  // With room for what an unpacker writes beyond; without levels, for copied blocks.
  const uint64_t n_numbers = n_rows * memory.stride + kGroupNumbers;
  const uint64_t copied_bytes =
      n_rows * std::min(columns_, part_) / format_.block_elements * format_.block_bytes;
  memory.rows = {cutter.bytes(transposes_levels_ ? copied_bytes : n_numbers * level_bytes_),
                 cutter.floats(runs_in(n_numbers)), cutter.floats(runs_in(n_numbers))};
  memory.rewritten = cutter.bytes(kMostRewrittenBytes);
  memory.filled.w = cutter.bytes(n_rows * n_columns * tile_bytes_);
  memory.filled.scales = cutter.floats(n_rows * n_runs);
  memory.filled.minima = cutter.floats(n_rows * n_runs);
  memory.tile_sums = kPartialSums * n_vectors * n_rows;
  memory.sums = cutter.floats((columns_ > kSegment ? tiles_.n : 1) * memory.tile_sums);
  memory.n_floats = cutter.used();
  return memory;
}

uint64_t IntegerProducts::scratch_floats() const noexcept {
  if (!uses_dots_) return tile_memory(nullptr).n_floats;
  return rewrites_ ? round_up(rewritten_bytes(format_, columns_ / format_.block_elements), 4) / 4 : 0;
}

/** Of a row: of all rows of a tile there are first the levels, then the scales, then the minima. */
uint64_t IntegerProducts::prepared_floats() const noexcept {
  return columns_ * tile_bytes_ / 4 + round_up(runs_in(columns_), 4) * (affine_ ? 2 : 1);
}

/** From column `start` on, where the segment starts. */
IntegerProducts::TileRows IntegerProducts::prepared_rows(float* group, uint64_t start) const {
  const auto n_rows = static_cast<uint64_t>(kernels_.level_tiles.rows);
  float* const scales = group + n_rows * columns_ * tile_bytes_ / 4;
  float* const minima = scales + n_rows * round_up(runs_in(columns_), 4);
  return {reinterpret_cast<uint8_t*>(group) + n_rows * start * tile_bytes_, scales + n_rows * runs_in(start),
          affine_ ? minima + n_rows * runs_in(start) : nullptr};
}

void IntegerProducts::prepare(const uint8_t* rows, uint64_t n_rows, float* scratch,
                              float* to) const noexcept {
  const TileMemory memory = tile_memory(scratch);
  const uint64_t row_bytes = columns_ / format_.block_elements * format_.block_bytes;
  const auto n_tile_rows = static_cast<uint64_t>(kernels_.level_tiles.rows);
  for (uint64_t r = 0; r < n_rows; r += n_tile_rows, to += n_tile_rows * prepared_floats()) {
    for (uint64_t start = 0; start < columns_; start += kSegment) {
      fill(rows + r * row_bytes, std::min(n_tile_rows, n_rows - r), start,
           std::min(kSegment, columns_ - start), memory, prepared_rows(to, start));
    }
  }
}

/** Unpacks some columns of up to LevelTiles::rows rows for a tile. */
void IntegerProducts::fill(const uint8_t* rows, uint64_t n_rows, uint64_t start, uint64_t n_columns,
                           const TileMemory& memory, const TileRows& to) const {
  const uint64_t row_blocks = columns_ / format_.block_elements, row_bytes = row_blocks * format_.block_bytes;
  const LevelTiles& tiles = kernels_.level_tiles;
  const FormatKernels& of_format = kernels_.formats[format_.index];
  const auto n_tile_rows = static_cast<uint64_t>(tiles.rows);
  const uint64_t stride_runs = runs_in(memory.stride);
  const RunOrder order(runs_in(n_columns));
  const auto rows_from = [&](uint64_t row) {
    return UnpackedCodes{memory.rows.bytes + row * memory.stride * level_bytes_,
                         memory.rows.scales + row * stride_runs, memory.rows.minima + row * stride_runs};
  };
  const RowTransposer transpose =
      narrows_ ? tiles.narrow[affine_ ? 1 : 0][run_ / 32] : tiles.transpose[run_ * level_bytes_ / 32];
  const uint64_t tile_run_bytes = run_ * tile_bytes_ * n_tile_rows;
  const auto levels_of = [&](uint64_t run) { return to.w + order.position(run) * tile_run_bytes; };
  const auto transpose_floats = [&](const float* from, uint64_t n_runs, float* to) {
    for (uint64_t i = 0; i < n_runs; i += 4) {
      tiles.transpose_scales(reinterpret_cast<const uint8_t*>(from + i), 4 * stride_runs,
                             reinterpret_cast<uint8_t*>(to + i * n_tile_rows));
    }
  };
  for (uint64_t part = 0; part < n_columns; part += part_) {
    const uint64_t n = std::min(part_, n_columns - part), n_runs = runs_in(n), first = runs_in(part);
    const uint64_t n_blocks = n / format_.block_elements;
    uint64_t stride = row_bytes;
    const uint8_t* blocks = rows + (start + part) / format_.block_elements * format_.block_bytes;
    if (transposes_levels_ && (rewrites_ || n_rows < n_tile_rows)) {
      const uint64_t n_bytes = n_blocks * format_.block_bytes;
      for (uint64_t r = 0; r < n_rows; ++r) {
        const uint8_t* const row = blocks + r * row_bytes;
        uint8_t* const copy = memory.rows.bytes + r * n_bytes;
        if (rewrites_) {
          rewrite_blocks(format_, big_endian_, row, n_blocks, copy);
        } else {
          std::memcpy(copy, row, static_cast<size_t>(n_bytes));
        }
      }
      blocks = memory.rows.bytes;
      stride = n_bytes;
    }
    const uint64_t at_once = columns_ <= part_ ? rows_at_once(columns_) : 1;
    for (uint64_t r = 0; r < n_rows; r += at_once) {
      unpack(of_format.unpack, blocks + r * stride, std::min(at_once, n_rows - r) * n_blocks,
             memory.rewritten, rows_from(r));
    }
    if (transposes_levels_) {
      const uint64_t n_block_runs = runs_in(format_.block_elements);
      for (uint64_t r = 0; r < n_runs; r += n_block_runs, blocks += format_.block_bytes) {
        uint8_t* runs[kMostRuns];
        for (uint64_t i = 0; i < n_block_runs; ++i) runs[i] = levels_of(first + r + i);
        of_format.transpose_levels(blocks, stride, runs);
      }
    } else {
      for (uint64_t r = 0; r < n_runs; ++r) {
        transpose(memory.rows.bytes + r * run_ * level_bytes_, memory.stride * level_bytes_,
                  levels_of(first + r));
      }
    }
    transpose_floats(memory.rows.scales, n_runs, to.scales + first * n_tile_rows);
    if (affine_) transpose_floats(memory.rows.minima, n_runs, to.minima + first * n_tile_rows);
  }
}

void IntegerProducts::multiply_tiles(const uint8_t* rows, uint64_t n_rows, const float* packed,
                                     float* scratch, float* y, uint64_t y_stride,
                                     const float* prepared) const {
  const TileMemory memory = tile_memory(scratch);
  const CodeTileMultipliers& tiles = kernels_.level_tiles.of[run_ == 16 ? 0 : 1][kind_];
  const uint64_t row_bytes = columns_ / format_.block_elements * format_.block_bytes;
  const auto n_tile_rows = static_cast<uint64_t>(kernels_.level_tiles.rows);
  CodeTile tile{};
  tile.affine = affine_;
  tile.y_stride = y_stride;
  uint64_t n_started = 0;
  while (n_rows > 0) {
    tile.n_rows = std::min(n_rows, n_tile_rows);
    for (uint64_t start = 0; start < columns_; start += kSegment) {
      const uint64_t n_columns = std::min(kSegment, columns_ - start);
      TileRows tile_rows = memory.filled;
      if (prepared != nullptr) {
        tile_rows = prepared_rows(const_cast<float*>(prepared), start);
      } else {
        fill(rows, tile.n_rows, start, n_columns, memory, tile_rows);
      }
      tile.w = tile_rows.w;
      tile.scales = tile_rows.scales;
      tile.minima = tile_rows.minima;
      tile.n_runs = runs_in(n_columns);
      tile.starts = start == 0;
      tile.ends = start + n_columns == columns_;
      tile.sums = memory.sums;
      for (uint64_t i = 0; i < tiles_.n; ++i) {
        const uint64_t v = tiles_.first_vector(i), n_vectors = tiles_.n_vectors(i);
        tile.x = reinterpret_cast<const uint8_t*>(packed) +
                 (v * runs_in(columns_) + runs_in(start) * n_vectors) * run_bytes();
        tile.y = y + v * y_stride;
        tile.n_vectors = n_vectors;
        if (kernels_.level_tiles.start != nullptr && n_started != n_vectors) {
          kernels_.level_tiles.start(n_vectors, n_started == 0);
          n_started = n_vectors;
        }
        tiles.of[n_vectors - 1](tile);
        if (columns_ > kSegment) tile.sums += memory.tile_sums;
      }
    }
    if (prepared != nullptr) {
      prepared += n_tile_rows * prepared_floats();
    } else {
      rows += tile.n_rows * row_bytes;
    }
    y += tile.n_rows;
    n_rows -= tile.n_rows;
  }
  if (kernels_.level_tiles.finish != nullptr) kernels_.level_tiles.finish();
}

}  // namespace gguf
