// Products that helper threads share.
#include "work/chunked_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "machine/helper_threads.h"
#include "test/native/core/allocation_meter.h"
#include "test/native/work/work_support.h"

namespace gguf::test {
namespace {

using Scratch = std::vector<uint8_t>;

/** All rows by one call of the kernels, whose bits dequant/products_test.cc checks. */
std::vector<float> plain_product(const ProductShape& shape, const uint8_t* rows, const float* x) {
  const Products products(shape.format, false, shape.columns, shape.n_vectors);
  std::vector<float> packed(products.packed_floats()), scratch(products.scratch_floats());
  std::vector<float> y(shape.n_results());
  products.pack(x, packed.data());
  products.multiply(rows, shape.n_rows, packed.data(), scratch.data(), y.data(), shape.n_rows);
  return y;
}

bool same_bits_or_nan(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0;
}

class SharedProduct : public testing::Test {
 protected:
  const Format format = format_named("Q8_0");
  ProductShape shape_of(uint64_t columns, uint64_t n_rows, uint64_t n_vectors) const {
    return {format, columns, n_rows, n_vectors};
  }
  std::vector<uint8_t> blocks_of(const ProductShape& shape) const {
    auto blocks = random_blocks(format, shape.n_rows * shape.columns / format.block_elements);
    for (size_t at = 1; at < blocks.size(); at += format.block_bytes) blocks[at] &= 0x3b;  // finite scales
    return blocks;
  }
  std::vector<float> vectors_of(const ProductShape& shape) const {
    std::vector<float> x(shape.columns * shape.n_vectors);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 64;
    return x;
  }
};

TEST_F(SharedProduct, HasTheBitsOfOneThread) {
  HelperThreads pool;
  Scratch scratch;
  for (const uint64_t n_vectors : {1, 3}) {
    for (const uint64_t n_rows : {1, 11, 1000}) {
      const ProductShape shape = shape_of(1024, n_rows, n_vectors);
      const std::vector<uint8_t> blocks = blocks_of(shape);
      const std::vector<float> x = vectors_of(shape),
                               expected = plain_product(shape, blocks.data(), x.data());
      const BlockFile stored(blocks);
      const auto mapped = stored.open(Access::kMap), read = stored.open(Access::kRead);
      for (const BlockSource& source :
           {in_memory(blocks), BlockFile::source(*mapped), BlockFile::source(*read)}) {
        std::vector<float> y(shape.n_results(), -1.0f);
        ChunkedProduct product(source, shape, x.data(), 3, y.data());
        pool.run(2, scratch, [&](Scratch& its_scratch) { product.work(its_scratch, [] { return false; }); });
        EXPECT_FALSE(product.failure());
        EXPECT_EQ(product.done_elements(), shape.n_results());
        EXPECT_EQ(y, expected);
      }
    }
  }
}

TEST_F(SharedProduct, HasTheSameBitsWithPreparedRows) {
  HelperThreads pool;
  Scratch scratch;
  for (const Format& each : formats()) {
    if (each.block_elements == 1) continue;
    for (const uint64_t columns : {512, 5120}) {  // one segment of a tile, and two
      ProductShape all{each, columns, 75, ChunkedPreparation::kVectors, Activations::kInt8};
      auto blocks = random_blocks(each, all.n_rows * columns / each.block_elements);
      const BlockFile stored(blocks);
      const auto read = stored.open(Access::kRead);
      for (const BlockSource& source : {in_memory(blocks), BlockFile::source(*read)}) {
        const auto prepared = ChunkedPreparation::memory_for(all);
        {
          ChunkedPreparation preparation(source, all, 3, prepared);
          EXPECT_FALSE(prepared->is_ready());
          pool.run(2, scratch,
                   [&](Scratch& its_scratch) { preparation.work(its_scratch, [] { return false; }); });
        }
        ASSERT_TRUE(prepared->is_ready());
        for (const uint64_t n_vectors : {1, 2, 3, 17, 33}) {
          for (const uint64_t first_row : {0, 32, 37}) {  // the last one is not where a tile starts
            ProductShape shape = all;
            shape.n_rows = first_row == 0 ? 75 : 20;
            shape.n_vectors = n_vectors;
            const std::vector<float> x = vectors_of(shape);
            std::vector<float> expected(shape.n_results()), y(shape.n_results(), -1.0f);
            BlockSource some = in_memory(blocks);
            some.data += first_row * shape.row_bytes();
            ChunkedProduct plain(some, shape, x.data(), 1, expected.data());
            do_work(plain);
            shape.first_row = first_row;
            shape.prepared = prepared;
            // Where rows are prepared, blocks are not read. Tiles of AMX, for many vectors, are others.
            if (n_vectors > 2 && n_vectors < 32 && first_row != 37) some.data = nullptr;
            ChunkedProduct product(some, shape, x.data(), 2, y.data());
            do_work(product);
            ASSERT_TRUE(std::equal(y.begin(), y.end(), expected.begin(), same_bits_or_nan))
                << each.name << ", " << columns << " columns, " << n_vectors << " vectors from " << first_row;
          }
        }
      }
    }
  }
}

TEST_F(SharedProduct, IsNotPreparedWhereItsFileEnds) {
  ProductShape shape = shape_of(1024, 1000, ChunkedPreparation::kVectors);
  shape.activations = Activations::kInt8;
  const std::vector<uint8_t> blocks = blocks_of(shape);
  for (const Access access : {Access::kRead, Access::kMap}) {
    const BlockFile stored(blocks);
    const auto file = stored.open(access);
    stored.truncate(shape.row_bytes() * 500);
    const auto prepared = ChunkedPreparation::memory_for(shape);
    ChunkedPreparation preparation(BlockFile::source(*file), shape, 1, prepared);
    do_work(preparation);
    EXPECT_TRUE(preparation.failure());
    EXPECT_FALSE(prepared->is_ready());
  }
}

TEST_F(SharedProduct, AllocatesNothingForItsVectorTheSecondTime) {
  const ProductShape shape = shape_of(1024, 3, 1);
  const std::vector<uint8_t> blocks = blocks_of(shape);
  const std::vector<float> x = vectors_of(shape);
  std::vector<float> y(shape.n_results());
  const BlockSource source = in_memory(blocks);
  const auto allocated_by_one = [&] {
    const size_t before = allocated_bytes();
    { const ChunkedProduct product(source, shape, x.data(), 1, y.data()); }
    return allocated_bytes() - before;
  };
  allocated_by_one();
  EXPECT_EQ(allocated_by_one(), 0u);
}

TEST_F(SharedProduct, KeepsNoMemoryOfManyVectors) {
  const ProductShape shape = shape_of(1024, 3, 400);
  const std::vector<uint8_t> blocks = blocks_of(shape);
  const std::vector<float> x = vectors_of(shape);
  std::vector<float> y(shape.n_results());
  for (int i = 0; i < 2; ++i) {
    const size_t before = allocated_bytes();
    { const ChunkedProduct product(in_memory(blocks), shape, x.data(), 1, y.data()); }
    EXPECT_GE(allocated_bytes() - before, x.size() * sizeof(float));
  }
}

TEST_F(SharedProduct, StopsWhereItsFileEnds) {
  const ProductShape shape = shape_of(1024, 1000, 1);
  const std::vector<uint8_t> blocks = blocks_of(shape);
  const std::vector<float> x = vectors_of(shape);
  for (const Access access : {Access::kRead, Access::kMap}) {
    const BlockFile stored(blocks);
    const auto file = stored.open(access);
    stored.truncate(shape.row_bytes() * 500);
    std::vector<float> y(shape.n_results());
    ChunkedProduct product(BlockFile::source(*file), shape, x.data(), 3, y.data());  // chunks for three
    do_work(product);
    ASSERT_TRUE(product.failure());
    EXPECT_EQ(product.failure()->code, ErrorCode::kTruncated);
    EXPECT_LE(product.done_elements(), 500u);
    EXPECT_GE(product.done_elements(), 300u);
  }
}

TEST_F(SharedProduct, WaitsForRowsThatAreNotReady) {
  const ProductShape shape = shape_of(1024, 1000, 1);
  const std::vector<uint8_t> blocks = blocks_of(shape);
  const std::vector<float> x = vectors_of(shape);
  std::vector<float> y(shape.n_results());
  ChunkedProduct product(in_memory(blocks), shape, x.data(), 2, y.data());
  product.set_ready_bytes(shape.row_bytes() * 499);
  do_work(product);
  EXPECT_FALSE(product.is_exhausted());
  EXPECT_LE(product.done_elements(), 499u);
  EXPECT_GE(product.done_elements(), 300u);
  product.set_ready_bytes(blocks.size());
  do_work(product);
  EXPECT_TRUE(product.is_exhausted());
  EXPECT_EQ(y, plain_product(shape, blocks.data(), x.data()));
}

TEST(UsefulThreads, AreFewForSmallProducts) {
  const auto threads = [](uint64_t columns, uint64_t n_rows, uint64_t n_vectors, uint64_t most) {
    const ProductShape shape{format_named("Q8_0"), columns, n_rows, n_vectors};
    return useful_product_threads(shape.n_multiplications(), most);
  };
  EXPECT_EQ(threads(256, 255, 1, 8), 1);
  EXPECT_EQ(threads(256, 512, 1, 8), 2);
  EXPECT_EQ(threads(256, 512, 100, 8), 8);
  EXPECT_EQ(threads(256, UINT64_MAX / 256, 1000, UINT64_MAX), INT32_MAX);
  EXPECT_EQ(threads(256, 0, 0, 8), 1);
}

}  // namespace
}  // namespace gguf::test
