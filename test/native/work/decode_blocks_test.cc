#include "work/decode_blocks.h"

#include <gtest/gtest.h>

#include "test/native/work/work_support.h"

namespace gguf::test {
namespace {

constexpr Out kOuts[] = {Out::kFloat32, Out::kFloat16, Out::kBFloat16};

std::vector<uint8_t> decode(const BlockSource& source, const BlockSelection& selection) {
  std::vector<uint8_t> result(static_cast<size_t>(selection.dst_bytes()));
  std::vector<uint8_t> scratch;
  const Status failure = decode_blocks(source, selection, 0, selection.n_blocks, result.data(), scratch);
  EXPECT_FALSE(failure) << failure->detail;
  unify_nans(result, selection.out);
  return result;
}

TEST(DecodeBlocks, EqualsDequantizeWhereverTheBlocksAre) {
  for (const Format& format : formats()) {
    const uint64_t n_blocks = 3000000 / format.block_elements / 8 + 7;  // more than one step of one MiB
    const auto blocks = random_blocks(format, n_blocks, format.id);
    const BlockFile stored(blocks);
    const auto mapped = stored.open(Access::kMap), read = stored.open(Access::kRead);
    const BlockSelection selection = select_all(format, kOuts[format.index % 3], n_blocks);
    const auto expected = plain_result(selection, blocks.data());
    ASSERT_EQ(decode(in_memory(blocks), selection), expected) << format.name;
    ASSERT_EQ(decode(BlockFile::source(*mapped), selection), expected) << format.name;
    ASSERT_EQ(decode(BlockFile::source(*read), selection), expected) << format.name;
  }
}

TEST(DecodeBlocks, DecodesAPartOfTheResult) {
  const Format& format = format_named("Q4_K");
  const auto blocks = random_blocks(format, 50);
  const BlockSelection selection = select_all(format, Out::kFloat32, 50);
  const auto expected = plain_result(selection, blocks.data());
  const size_t block_bytes = selection.block_dst_bytes();
  std::vector<uint8_t> part(10 * block_bytes), scratch;
  ASSERT_FALSE(decode_blocks(in_memory(blocks), selection, 17, 10, part.data(), scratch));
  unify_nans(part, Out::kFloat32);
  EXPECT_TRUE(
      std::equal(part.begin(), part.end(), expected.begin() + static_cast<ptrdiff_t>(17 * block_bytes)));
}

TEST(DecodeBlocks, LargeResultsAreStreamedAndEqual) {
  const Format& format = format_named("Q8_0");
  const uint64_t n_blocks = (uint64_t{33} << 20) / 4 / format.block_elements + 3;
  const auto blocks = random_blocks(format, n_blocks);
  const BlockSelection selection = select_all(format, Out::kFloat32, n_blocks);
  ASSERT_TRUE(may_stream(selection.dst_bytes()));
  const BlockFile stored(blocks);
  EXPECT_EQ(decode(BlockFile::source(*stored.open(Access::kMap)), selection),
            plain_result(selection, blocks.data()));
}

TEST(DecodeBlocks, AFileThatWasCutOffIsTruncated) {
  const Format& format = format_named("Q8_0");
  const auto blocks = random_blocks(format, 2000);
  for (const Access access : {Access::kMap, Access::kRead}) {
    const BlockFile stored(blocks);
    const auto file = stored.open(access);
    const uint64_t n_left = 1000 * format.block_bytes;
    stored.truncate(n_left);
    const BlockSelection selection = select_all(format, Out::kFloat32, 2000);
    std::vector<uint8_t> result(static_cast<size_t>(selection.dst_bytes())), scratch;
    EXPECT_FALSE(decode_blocks(BlockFile::source(*file), selection, 0, 1000, result.data(), scratch));
    for (const uint64_t first : {uint64_t{0}, uint64_t{1000}}) {
      const Status failure = decode_blocks(BlockFile::source(*file), selection, first, 1001 - first / 1000,
                                           result.data(), scratch);
      ASSERT_TRUE(failure.has_value());
      EXPECT_EQ(failure->code, ErrorCode::kTruncated);
      EXPECT_EQ(failure->offset, BlockFile::kOffset + n_left);
    }
    // Rows: the one that is gone counts, wherever it stands in the order.
    const BlockSelection rows = select_rows(format, Out::kFloat32, {5, 199, 3}, 10);
    EXPECT_TRUE(decode_blocks(BlockFile::source(*file), rows, 0, 30, result.data(), scratch).has_value());
    EXPECT_FALSE(decode_blocks(BlockFile::source(*file), rows, 0, 10, result.data(), scratch).has_value());
  }
}

TEST(Formats, KnowTheirPositions) {
  for (size_t i = 0; i < formats().size(); ++i) {
    EXPECT_EQ(formats()[i].index, i);
    EXPECT_EQ(find_format(formats()[i].id)->index, i);
  }
}

}  // namespace
}  // namespace gguf::test
