// Encoders on every instruction set of this machine against those of the scalar one: any finite numbers, with
// any importance or none, any rows and columns. Each run is one matrix.
//
//   | format | rows | columns | options | seed: 3 bytes | bytes ...
//
// The options: two bits for the kind of numbers, two for the importance, three for the alignment, and one for
// a number that is not finite. The bytes given are the first numbers; the others, and the weights, are made
// from the seed.
#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dequant/dequant.h"
#include "dequant/half.h"
#include "test/fuzz/memory.h"
#include "test/fuzz/random.h"
#include "test/fuzz/require.h"

namespace gguf::fuzz {
namespace {

constexpr size_t kOptionBytes = 7;
constexpr size_t kMaxColumns = 1024, kMaxRows = 4;
/** Searches of codebooks take a thousand times as long as others: fewer of them, of fewer numbers. */
constexpr uint32_t kSlowChunk = 4096;
constexpr size_t kMaxSlowColumns = 512, kSlowOneIn = 8;

enum class Numbers { kAnyBits, kWhole, kOrdinary, kFewBits };
enum class Weights { kNone, kOrdinary, kAnyBits, kSomeZero };

float finite(uint32_t bits) {
  // Without the highest bit of the exponent where all are set.
  return float_of_bits((bits & 0x7f800000u) == 0x7f800000u ? bits & ~0x40000000u : bits);
}

float number_of(Numbers kind, uint32_t bits) {
  switch (kind) {
    case Numbers::kAnyBits:
      return finite(bits);
    case Numbers::kWhole:
      return static_cast<float>(bits % 129) / 2.0f - 32.0f;
    case Numbers::kOrdinary:
      return static_cast<float>(bits % 2001) / 1000.0f - 1.0f;
    case Numbers::kFewBits:
      return std::ldexp(bits % 3 == 0   ? 0.0f
                        : bits % 3 == 1 ? 1.0f
                                        : -1.0f,
                        static_cast<int>(bits >> 8) % 24 - 12);
  }
  return 0;
}

float weight_of(Weights kind, uint32_t bits) {
  if (kind == Weights::kAnyBits) return std::fabs(finite(bits));
  if (kind == Weights::kSomeZero && bits % 2 == 0) return 0.0f;
  return static_cast<float>(bits % 1001) / 100.0f;
}

}  // namespace
}  // namespace gguf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gguf;
  using namespace gguf::fuzz;
  if (size < kOptionBytes) return -1;
  const Format& format = formats()[data[0] % formats().size()];
  if (!can_quantize(format)) return -1;
  const bool is_slow = encoder_facts(format).chunk <= kSlowChunk;
  if (is_slow && data[4] % kSlowOneIn != 0) return -1;
  const size_t most_columns = is_slow ? kMaxSlowColumns : kMaxColumns;
  const size_t row_blocks = 1 + data[2] % (most_columns / format.block_elements);
  const size_t n_rows = is_slow ? 1 : 1 + data[1] % kMaxRows, columns = row_blocks * format.block_elements;
  const size_t n_numbers = n_rows * columns, n_blocks = n_rows * row_blocks;
  const auto kind = static_cast<Numbers>(data[3] & 3);
  auto weights = static_cast<Weights>(data[3] >> 2 & 3);
  if (weights == Weights::kNone && needs_importance(format)) weights = Weights::kOrdinary;
  Random random(data[4] | data[5] << 8 | data[6] << 16);

  const Memory numbers(0, n_numbers * sizeof(float));
  fill(numbers.data(), n_numbers * sizeof(float), data + kOptionBytes, size - kOptionBytes, random);
  auto* const x = reinterpret_cast<float*>(numbers.data());
  for (size_t i = 0; i < n_numbers; ++i) x[i] = number_of(kind, bits_at<uint32_t>(numbers.data(), i));
  const Memory importance(0, columns * sizeof(float));
  auto* const w = reinterpret_cast<float*>(importance.data());
  for (size_t i = 0; i < columns; ++i) w[i] = weight_of(weights, static_cast<uint32_t>(random.bits() >> 32));
  const RowEncoding rows{format, columns, weights == Weights::kNone ? nullptr : w};

  std::vector<uint8_t> scratch;
  if ((data[3] & 128) != 0 && format.block_elements > 1) {
    const size_t at = random.below(n_numbers);
    x[at] = random.one_in(2) ? INFINITY : NAN;
    const Memory blocks(0, n_blocks * format.block_bytes);
    const Status refused = quantize_rows(rows, 0, n_blocks, x, blocks.data(), scratch);
    FUZZ_REQUIRE(refused && refused->code == ErrorCode::kRange);
    return 0;
  }
  std::vector<uint8_t> expected(n_blocks * format.block_bytes);
  use_isa("scalar");
  FUZZ_REQUIRE(!quantize_rows(rows, 0, n_blocks, x, expected.data(), scratch));
  for (const char* isa : available_isas()) {
    use_isa(isa);
    const Memory blocks(data[3] >> 4 & 7, expected.size());
    FUZZ_REQUIRE(!quantize_rows(rows, 0, n_blocks, x, blocks.data(), scratch));
    FUZZ_REQUIRE(blocks.untouched_before());
    FUZZ_REQUIRE(std::memcmp(blocks.data(), expected.data(), expected.size()) == 0);
  }
  return 0;
}
