#include "quant/quantize.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/checked.h"
#include "dequant/dequant.h"
#include "dequant/half.h"
#include "quant/encoders.h"

namespace gguf {
namespace {

struct AllFacts {
  EncoderFacts of[kFormatCount];
};

constexpr AllFacts all_facts() {
  AllFacts facts{};
#define ENCODER(name, importance, widest, chunk) \
  facts.of[k##name] = {true, Importance::importance, Search::widest, chunk};
#include "quant/encoders.def"
#undef ENCODER
  return facts;
}

constexpr AllFacts kFacts = all_facts();

/** The encoders of the instruction set in use. */
const EncoderTable& active_encoders() {
  const EncoderTable* const tables[] = {kAvx512Encoders, kAvx2Encoders, kNeonEncoders, kWasmEncoders};
  for (const EncoderTable* const table : tables) {
    if (table != nullptr && std::strcmp(table->isa, active_base_isa()) == 0) return *table;
  }
  return kScalarEncoders != nullptr ? *kScalarEncoders : *kWasmEncoders;
}

/** How many times as long the wider search takes, about. */
constexpr uint64_t kWiderWork = 8;

/** Numbers that are copied and encoded at a time, in the first-level cache. */
constexpr uint64_t kPieceNumbers = 4096;

constexpr size_t kAlignment = 64;

constexpr uint32_t magnitude(uint32_t bits) {
  return bits & 0x7fffffffu;
}
constexpr uint32_t kInfinity = 0x7f800000;

/** The first of n numbers that is not finite; n if all are. */
uint64_t first_not_finite(const float* x, uint64_t n) {
  // Without branches: the sum has its highest bit only where the exponent has all of its bits.
  uint32_t sums = 0;
  for (uint64_t i = 0; i < n; ++i) sums |= magnitude(bits_of_float(x[i])) + (0x80000000u - kInfinity);
  if (sums < 0x80000000u) return n;
  uint64_t i = 0;
  while (magnitude(bits_of_float(x[i])) < kInfinity) ++i;
  return i;
}

Error not_finite(const RowEncoding& rows, uint64_t at, float found) {
  const uint32_t bits = bits_of_float(found);
  const char* const what = magnitude(bits) > kInfinity ? "NaN" : bits > kInfinity ? "-Infinity" : "Infinity";
  return Error{ErrorCode::kRange, "numbers[" + std::to_string(at) + "] (row " +
                                      std::to_string(at / rows.columns) + ", column " +
                                      std::to_string(at % rows.columns) + ") is " + what + ", which " +
                                      rows.format.name + " blocks cannot hold"};
}

/** Room for as many numbers as are in memory already, aligned to a cache line. */
float* room_for(uint64_t n, std::vector<uint8_t>& scratch) {
  const size_t needed = to_size(n * sizeof(float)) + kAlignment;
  if (scratch.size() < needed) scratch.resize(needed);
  const size_t misalignment = reinterpret_cast<uintptr_t>(scratch.data()) % kAlignment;
  return reinterpret_cast<float*>(scratch.data() + (kAlignment - misalignment) % kAlignment);
}

}  // namespace

const EncoderFacts& encoder_facts(const Format& format) {
  return kFacts.of[format.index];
}

bool can_quantize(const Format& format) {
  return encoder_facts(format).exists;
}

bool needs_importance(const Format& format) {
  return encoder_facts(format).importance == Importance::kRequired;
}

uint64_t chunk_numbers(const Format& format, Search search) {
  const EncoderFacts& facts = encoder_facts(format);
  const bool wider = search == Search::kBest && facts.widest == Search::kBest;
  return facts.chunk / (wider ? kWiderWork : 1);
}

void quantize(const Format& format, const float* x, const float* importance, uint64_t n_blocks, uint8_t* dst,
              Search search) noexcept {
  active_encoders().of[format.index](x, importance, n_blocks, dst, search);
}

uint64_t RowEncoding::blocks_at_once() const {
  const bool whole_rows = importance != nullptr && encoder_facts(format).importance == Importance::kRow;
  return whole_rows ? columns / format.block_elements : 1;
}

Status quantize_rows(const RowEncoding& rows, uint64_t first_block, uint64_t n_blocks, const float* x,
                     uint8_t* dst, std::vector<uint8_t>& scratch) {
  const Format& format = rows.format;
  if (format.block_elements == 1) {  // which may be anything
    quantize(format, x, nullptr, n_blocks, dst);
    return std::nullopt;
  }
  const uint64_t row_blocks = rows.columns / format.block_elements;
  const uint64_t most = std::max(kPieceNumbers / format.block_elements, rows.blocks_at_once());
  // An encoder relies on what was checked, so it gets numbers that nobody else can change.
  float* const piece = room_for(std::min(most, n_blocks) * format.block_elements, scratch);
  for (uint64_t n; n_blocks > 0; n_blocks -= n, first_block += n) {
    const uint64_t in_row = first_block % row_blocks;
    n = std::min(n_blocks, most);
    if (rows.importance != nullptr) n = std::min(n, row_blocks - in_row);
    const uint64_t n_numbers = n * format.block_elements;
    std::memcpy(piece, x, to_size(n_numbers * sizeof *x));
    const uint64_t bad = first_not_finite(piece, n_numbers);
    if (bad < n_numbers) return not_finite(rows, first_block * format.block_elements + bad, piece[bad]);
    const float* const importance =
        rows.importance == nullptr ? nullptr : rows.importance + in_row * format.block_elements;
    quantize(format, piece, importance, n, dst, rows.search);
    x += n_numbers;
    dst += n * format.block_bytes;
  }
  return std::nullopt;
}

}  // namespace gguf
