// Products on every instruction set of this machine against the two rules of dequant/products.h, computed
// number by number: any blocks and vectors, any number of rows, columns and vectors, both byte orders. Each
// run is one matrix.
//
//   | format | rows | columns | vectors | options | seed: 3 bytes | bytes ...
//
// The options: six bits for the alignment, one for vectors of int8, one for big-endian blocks.
// The bytes given are the first blocks; the others, and the vectors, are made from the seed.
#include "dequant/products.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dequant/block_fields.h"
#include "dequant/dequant.h"
#include "test/fuzz/memory.h"
#include "test/fuzz/random.h"
#include "test/fuzz/require.h"
#include "test/native/dequant/integer_rule.h"
#include "test/native/dequant/number_rule.h"

namespace gguf::fuzz {
namespace {

constexpr size_t kOptionBytes = 8;
/** The most columns: several groups of blocks. */
constexpr size_t kMaxColumns = 1300;
/** More rows and vectors than a tile has. */
constexpr size_t kMaxRows = 18, kMaxVectors = 8;

float number_of(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float number;
  std::memcpy(&number, &low, sizeof number);
  return number;
}

/** Ordinary numbers, and one in sixteen of any kind. */
void fill_vectors(std::vector<float>& x, Random& random) {
  for (float& number : x) {
    number = random.one_in(16) ? number_of(random.bits())
                               : static_cast<float>(random.below(2001)) / 1000.0f - 1.0f;
  }
}

/** The products of all rows with all vectors: numbers by the scalar kernels, then the rule of
 * number_products.h.
 */
std::vector<float> products_of_numbers(const Format& format, const uint8_t* blocks, size_t n_rows,
                                       size_t columns, const std::vector<float>& x) {
  use_isa("scalar");
  return test::number_products(format, blocks, n_rows, columns, x);
}

/** The same by the rule of integer_products.h. */
std::vector<float> products_of_codes(const Format& format, const uint8_t* blocks, size_t n_rows,
                                     size_t columns, const std::vector<float>& x) {
  bool is_right = false;
  const test::Levels levels = test::levels_of(format, blocks, n_rows * columns, is_right);
  FUZZ_REQUIRE(is_right);
  std::vector<float> y;
  for (size_t v = 0; v < x.size(); v += columns) {
    const test::Rounded vector = test::rounded(x.data() + v, columns);
    for (size_t r = 0; r < n_rows; ++r) {
      y.push_back(test::integer_product(format, levels, r, vector, is_right));
    }
  }
  FUZZ_REQUIRE(is_right);
  return y;
}

}  // namespace
}  // namespace gguf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gguf;
  using namespace gguf::fuzz;
  if (size < kOptionBytes) return -1;
  const Format& format = formats()[data[0] % formats().size()];
  const size_t most_blocks = std::max<size_t>(1, kMaxColumns / format.block_elements);
  const size_t row_blocks =
      1 + (format.block_elements == 1 ? data[2] * (most_blocks - 1) / 255 : data[2] % most_blocks);
  const size_t columns = row_blocks * format.block_elements;
  const size_t n_rows = 1 + data[1] % kMaxRows, n_vectors = 1 + data[3] % kMaxVectors;
  const bool big_endian = (data[4] & 128) != 0;
  Random random(data[5] | data[6] << 8 | data[7] << 16);

  const size_t n_blocks = n_rows * row_blocks, n_bytes = n_blocks * format.block_bytes;
  const Memory blocks(data[4] % kLine, n_bytes);
  fill(blocks.data(), n_bytes, data + kOptionBytes, size - kOptionBytes, random);
  std::vector<float> x(n_vectors * columns);
  fill_vectors(x, random);

  std::vector<uint8_t> little(blocks.data(), blocks.data() + n_bytes);
  if (big_endian) swap_blocks(fields_of(format), blocks.data(), n_blocks, little.data());
  const auto activations = (data[4] & 64) != 0 ? Activations::kInt8 : Activations::kFloat32;
  const bool uses_codes = activations == Activations::kInt8 && format.block_elements > 1;
  const std::vector<float> expected =
      (uses_codes ? products_of_codes : products_of_numbers)(format, little.data(), n_rows, columns, x);

  for (const char* isa : available_isas()) {
    use_isa(isa);
    const Products products(format, big_endian, columns, n_vectors, activations);
    const Memory packed(0, products.packed_floats() * sizeof(float));
    const Memory scratch(0, products.scratch_floats() * sizeof(float));
    const Memory y(sizeof(float), expected.size() * sizeof(float));
    products.pack(x.data(), reinterpret_cast<float*>(packed.data()));
    products.multiply(blocks.data(), n_rows, reinterpret_cast<const float*>(packed.data()),
                      reinterpret_cast<float*>(scratch.data()), reinterpret_cast<float*>(y.data()), n_rows);
    FUZZ_REQUIRE(y.untouched_before());
    FUZZ_REQUIRE(same_numbers<uint32_t>(y.data(), reinterpret_cast<const uint8_t*>(expected.data()),
                                        expected.size(), 0x7f800000));
  }
  return 0;
}
