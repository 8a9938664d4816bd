// Products of integers by AMX with emulated instructions, on machines that have AVX-512 but no AMX: the same
// kernel, compiled with test/native/emulated/amx.h. What they give is that of the scalar kernels, to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "dequant/isa/amx_table.h"
#include "test/native/dequant/product_support.h"
#include "test/native/dequant/test_isas.h"

#if defined(__x86_64__)
#include "dequant/cpu.h"
#include "dequant/integer_products.h"
#include "dequant/simd/avx512_bytes.h"
#include "test/native/core/guarded_bytes.h"
#include "test/native/emulated/amx.h"

GGUF_TARGET_BEGIN(GGUF_ISA_FEATURES)
#include "dequant/isa/amx_tile.h"
GGUF_TARGET_END

namespace gguf::test {
namespace {

class Avx512Amx : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_has_avx512()) GTEST_SKIP() << "this processor has no AVX-512";
  }
  void TearDown() override { EXPECT_FALSE(amx::state.configured); }
};

/** In memory of which not a byte too much is read or written. */
Numbers guarded_products(const KernelTable& kernels, const Format& format, const std::vector<uint8_t>& bytes,
                         uint64_t n_rows, uint64_t columns, const Numbers& x) {
  const uint64_t n = x.size() / columns;
  const IntegerProducts products(format, false, columns, n, kernels);
  const auto guarded = [](uint64_t n_floats) {
    const std::vector<uint8_t> any(n_floats * sizeof(float), 0x77);
    return GuardedBytes(any.data(), any.size());
  };
  const GuardedBytes blocks(bytes.data(), bytes.size());
  const GuardedBytes packed = guarded(products.packed_floats()), scratch = guarded(products.scratch_floats()),
                     y = guarded(n * n_rows);
  const auto floats = [](const GuardedBytes& memory) { return reinterpret_cast<float*>(memory.data()); };
  products.pack(x.data(), floats(packed));
  products.multiply(blocks.data(), n_rows, floats(packed), floats(scratch), floats(y), n_rows);
  Numbers numbers(n * n_rows);
  std::memcpy(numbers.data(), y.data(), y.size());
  return numbers;
}

bool has_tiles(const KernelTable& table, const Format& format) {
  return &kernels_for_products(table, format, table.columns_wanted, table.n_wanted) == &table;
}

TEST_F(Avx512Amx, EqualsScalarForAnyBlocksAndAnyNumberOfVectors) {
  const KernelTable table = amx_table(kAmxTiles, nullptr);
  const uint64_t numbers_of_vectors[] = {5, 6, 7, 16, 17, 64, 128};
  int i = 0;
  for (const Format& format : formats()) {
    if (format.block_elements == 1 || !has_tiles(table, format)) continue;
    const uint64_t block = format.block_elements;
    // Less than 16 runs, a part and segments of a row, each with ends that fill no group of runs.
    for (const uint64_t wanted : {256, 1088, 4352}) {
      const uint64_t columns = (wanted + block - 1) / block * block;
      for (const uint64_t n_rows : {5, 35}) {
        const Blocks kind = n_rows == 5 ? Blocks::kAny : Blocks::kOrdinary;
        const uint64_t n = columns > 4096 ? 5 + 16 * (n_rows == 5 ? 1 : 0) : numbers_of_vectors[i++ % 7];
        SCOPED_TRACE(testing::Message()
                     << format.name << ", " << n_rows << " rows of " << columns << ", " << n << " vectors");
        Random random(format.id + columns + n_rows);
        const auto bytes = random.blocks(format, n_rows * columns / block, kind);
        const Numbers x = random.vectors(n * columns, kind);
        const uint64_t before = amx::state.n_products;
        expect_same(guarded_products(table, format, bytes, n_rows, columns, x),
                    guarded_products(*kScalarKernels, format, bytes, n_rows, columns, x));
        EXPECT_GT(amx::state.n_products, before);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(Avx512Amx, EqualsScalarForEveryNumberOfVectors) {
  const KernelTable table = amx_table(kAmxTiles, nullptr);
  for (const char* name : {"Q4_K", "Q8_0"}) {  // with minima and without
    for (const Format& format : formats()) {
      if (std::strcmp(format.name, name) != 0) continue;
      const uint64_t columns = 512, n_rows = 17;
      Random random(format.id);
      const auto bytes = random.blocks(format, n_rows * columns / format.block_elements, Blocks::kOrdinary);
      Numbers x = random.vectors(33 * columns, Blocks::kOrdinary);
      x[5] = HUGE_VALF;  // all products of the first vector are NaN
      for (uint64_t i = 0; i < 32; ++i) x[columns + i] = 0;
      x[2 * columns] = std::numeric_limits<float>::max();
      for (uint64_t n = 2; n <= 33; ++n) {
        SCOPED_TRACE(testing::Message() << name << ", " << n << " vectors");
        const Numbers some(x.begin(), x.begin() + static_cast<ptrdiff_t>(n * columns));
        expect_same(guarded_products(table, format, bytes, n_rows, columns, some),
                    guarded_products(*kScalarKernels, format, bytes, n_rows, columns, some));
        if (HasFailure()) return;
      }
    }
  }
}

void multiply_wrongly(const CodeTile& tile) {
  kAmxTiles.of.of[15](tile);
  tile.y[tile.y_stride + 3] += 1;
}

TEST_F(Avx512Amx, IsTestedBeforeItIsUsed) {
  EXPECT_TRUE(amx_tiles_are_right(kAmxTiles));
  AmxTiles wrong = kAmxTiles;
  wrong.of.of[15] = multiply_wrongly;
  EXPECT_FALSE(amx_tiles_are_right(wrong));
}

TEST_F(Avx512Amx, LeavesTheConfigurationOfOthersAsItWas) {
  AmxConfig others(3);
  _tile_loadconfig(&others);
  EXPECT_TRUE(amx_tiles_are_right(kAmxTiles));
  AmxConfig found(0);
  _tile_storeconfig(&found);
  EXPECT_EQ(std::memcmp(&found, &others, sizeof found), 0);
  _tile_release();
}

TEST_F(Avx512Amx, IsUsedForEnoughVectorsAndIfItIsReady) {
  static bool ready;
  static int n_asked;
  const KernelTable table = amx_table(kAmxTiles, [] {
    ++n_asked;
    return ready;
  });
  const Format &q8_0 = *find_format(8), &q6_k = *find_format(14);
  ready = false;
  n_asked = 0;
  EXPECT_EQ(&kernels_for_products(table, q8_0, 1024, 31), kAvx512Kernels);
  EXPECT_EQ(n_asked, 0);
  EXPECT_EQ(&kernels_for_products(table, q8_0, 1024, 32), kAvx512Kernels);
  EXPECT_EQ(n_asked, 1);
  ready = true;
  EXPECT_EQ(&kernels_for_products(table, q8_0, 1024, 32), &table);
  EXPECT_EQ(&kernels_for_products(table, q8_0, 992, 32), kAvx512Kernels);
  EXPECT_EQ(&kernels_for_products(table, q6_k, 1024, 32), kAvx512Kernels);  // its runs are short
  EXPECT_EQ(&kernels_for_products(*kAvx512Kernels, q8_0, 1024, 32), kAvx512Kernels);
}

}  // namespace
}  // namespace gguf::test
#endif
