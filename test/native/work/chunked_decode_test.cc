// Chunks that threads claim without a lock. Under ThreadSanitizer these tests also show that each is decoded
// by one thread, after its blocks were there.
#include "work/chunked_decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "machine/helper_threads.h"
#include "test/native/core/allocation_meter.h"
#include "test/native/work/work_support.h"

namespace gguf::test {
namespace {

constexpr int kThreads = 4;

/** Blocks of Q8_0 for twenty chunks of one MiB and a part of another, in float32. */
class Chunks : public testing::Test {
 protected:
  const Format format = format_named("Q8_0");
  const uint64_t chunk_blocks = kChunkBytes / (format.block_elements * sizeof(float));
  const uint64_t n_blocks = 20 * chunk_blocks + 17;
  const std::vector<uint8_t> blocks = random_blocks(format, n_blocks);
  const BlockSelection all = select_all(format, Out::kFloat32, n_blocks);
  std::vector<uint8_t> result = std::vector<uint8_t>(static_cast<size_t>(all.dst_bytes()), 0xa5);

  void expect_result(const BlockSelection& selection) {
    unify_nans(result, selection.out);
    const auto expected = plain_result(selection, blocks.data());
    ASSERT_LE(expected.size(), result.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result.begin()));
  }
};

bool always() {
  return true;
}

TEST_F(Chunks, ManyThreadsDecodeEachOnce) {
  const BlockFile stored(blocks);
  const auto mapped = stored.open(Access::kMap), read = stored.open(Access::kRead);
  for (const BlockSource& source :
       {in_memory(blocks), BlockFile::source(*mapped), BlockFile::source(*read)}) {
    std::fill(result.begin(), result.end(), uint8_t{0xa5});
    ChunkedDecode decode(source, all, result.data());
    EXPECT_EQ(decode.unclaimed(), 21u);
    do_work_on_threads(kThreads, decode);
    EXPECT_TRUE(decode.is_exhausted());
    EXPECT_EQ(decode.unclaimed(), 0u);
    EXPECT_EQ(decode.done_elements(), all.n_elements());
    EXPECT_FALSE(decode.failure());
    expect_result(all);
  }
}

TEST_F(Chunks, HaveTheSameSizeInEveryOutputType) {
  for (const Out out : {Out::kFloat16, Out::kBFloat16}) {
    const BlockSelection selection = select_all(format, out, n_blocks);
    ChunkedDecode decode(in_memory(blocks), selection, result.data());
    EXPECT_EQ(decode.unclaimed(), 11u);
    do_work_on_threads(kThreads, decode);
    expect_result(selection);
  }
}

TEST_F(Chunks, OfRowsCrossTheirBounds) {
  constexpr uint64_t kRowBlocks = 3000;  // a third of a chunk and a bit
  std::vector<uint64_t> rows;
  for (uint64_t i = 0; i < n_blocks / kRowBlocks; ++i) rows.push_back(i * 7 % (n_blocks / kRowBlocks));
  rows.push_back(rows.front());
  const BlockSelection selection = select_rows(format, Out::kFloat32, rows, kRowBlocks);
  result.resize(static_cast<size_t>(selection.dst_bytes()));
  ChunkedDecode decode(in_memory(blocks), selection, result.data());
  do_work_on_threads(kThreads, decode);
  EXPECT_EQ(decode.done_elements(), selection.n_elements());
  expect_result(selection);
}

/** The source is filled while threads already decode what is there. */
TEST_F(Chunks, WaitForBlocksThatAreNotReady) {
  std::vector<uint8_t> source(blocks.size());
  ChunkedDecode decode(in_memory(source), all, result.data());
  decode.set_ready_bytes(0);
  EXPECT_EQ(decode.unclaimed(), 0u);
  EXPECT_FALSE(decode.is_exhausted());
  on_threads(kThreads + 1, [&](int number) {
    if (number > 0) {
      std::vector<uint8_t> scratch;
      while (!decode.is_exhausted()) decode.work(scratch, never);
      return;
    }
    const uint64_t step = chunk_blocks * 3 / 4;  // not a whole chunk: the last that is ready ends before it
    for (uint64_t ready = 0; ready < n_blocks;) {
      const uint64_t end = std::min(ready + step, n_blocks);
      std::copy(blocks.begin() + static_cast<ptrdiff_t>(ready * format.block_bytes),
                blocks.begin() + static_cast<ptrdiff_t>(end * format.block_bytes),
                source.begin() + static_cast<ptrdiff_t>(ready * format.block_bytes));
      ready = end;
      decode.set_ready_bytes(ready * format.block_bytes);
    }
  });
  EXPECT_EQ(decode.done_elements(), all.n_elements());
  expect_result(all);
}

TEST_F(Chunks, AtLeastOneIsDoneBeforeWorkStops) {
  ChunkedDecode decode(in_memory(blocks), all, result.data());
  std::vector<uint8_t> scratch;
  decode.work(scratch, always);
  EXPECT_EQ(decode.unclaimed(), 20u);
  EXPECT_EQ(decode.done_elements(), chunk_blocks * format.block_elements);
}

TEST_F(Chunks, NoneIsClaimedAfterStop) {
  ChunkedDecode decode(in_memory(blocks), all, result.data());
  std::atomic<int> n_started{0};
  on_threads(kThreads, [&](int) {
    std::vector<uint8_t> scratch;
    decode.work(scratch, [&] {
      if (++n_started == 5) decode.stop();
      return false;
    });
  });
  EXPECT_TRUE(decode.is_exhausted());
  EXPECT_EQ(decode.unclaimed(), 0u);
  const uint64_t done = decode.done_elements();
  EXPECT_GE(done, 5 * chunk_blocks * format.block_elements);
  EXPECT_LE(done, (5 + kThreads) * chunk_blocks * format.block_elements);
  do_work(decode);
  EXPECT_EQ(decode.done_elements(), done);
  EXPECT_FALSE(decode.failure());
}

TEST_F(Chunks, OneThatFailsStopsTheOthers) {
  for (const Access access : {Access::kRead, Access::kMap}) {
    const BlockFile stored(blocks);
    const auto file = stored.open(access);
    stored.truncate(2 * chunk_blocks * format.block_bytes);
    ChunkedDecode decode(BlockFile::source(*file), all, result.data());
    do_work_on_threads(kThreads, decode);
    ASSERT_TRUE(decode.failure());
    EXPECT_EQ(decode.failure()->code, ErrorCode::kTruncated);
    EXPECT_TRUE(decode.is_exhausted());
    EXPECT_LE(decode.done_elements(), 2 * chunk_blocks * format.block_elements);
  }
}

TEST_F(Chunks, TheFirstFailureIsKept) {
  ChunkedDecode decode(in_memory(blocks), all, result.data());
  decode.fail(Error{ErrorCode::kRange, "first"});
  on_threads(kThreads, [&](int) { decode.fail(Error{ErrorCode::kRange, "later"}); });
  EXPECT_EQ(decode.failure()->detail, "first");
}

/** Chunks that fail, each with its number, the first two at once: chunk `last` after the other. */
class FailingWork : public ChunkedWork {
 public:
  explicit FailingWork(uint64_t last) : ChunkedWork(3, 1, {1, 1}), last_(last) {}

 private:
  Status do_units(uint64_t first, uint64_t, std::vector<uint8_t>&) override {
    ++n_begun_;
    const auto may_fail = [&] { return n_begun_ == 2 && (first != last_ || unclaimed() == 0); };
    while (!may_fail()) std::this_thread::yield();
    return Error{ErrorCode::kRange, std::to_string(first)};
  }

  const uint64_t last_;
  std::atomic<int> n_begun_{0};
};

TEST_F(Chunks, TheFailureOfTheFirstIsKeptWhicheverFailsFirst) {
  for (const uint64_t last : {0, 1}) {
    FailingWork work(last);
    do_work_on_threads(2, work);
    ASSERT_TRUE(work.failure());
    EXPECT_EQ(work.failure()->detail, "0");
  }
}

TEST_F(Chunks, AThreadThatReturnsMakesRoomForAnother) {
  ChunkedDecode decode(in_memory(blocks), all, result.data());
  decode.limit_threads(1);
  std::vector<uint8_t> scratch;
  for (uint64_t n = 1; n <= 21; ++n) {
    decode.work(scratch, [&] {
      std::vector<uint8_t> its_own;
      decode.work(its_own, never);  // one too many
      return true;
    });
    ASSERT_EQ(decode.claimed(), n);
  }
  expect_result(all);
}

TEST_F(Chunks, ManyThreadsCanFailAtOnce) {
  for (int round = 0; round < 50; ++round) {
    ChunkedDecode decode(in_memory(blocks), all, result.data());
    on_threads(kThreads, [&](int number) {
      decode.fail(
          Error{ErrorCode::kRange, "a sentence that needs memory, of thread " + std::to_string(number)});
    });
    ASSERT_TRUE(decode.failure());
    EXPECT_EQ(decode.failure()->detail.find("a sentence that needs memory, of thread "), 0u);
  }
}

TEST_F(Chunks, OfNothingAreNone) {
  ChunkedDecode decode(BlockSource{}, select_all(format, Out::kFloat32, 0), nullptr);
  EXPECT_TRUE(decode.is_exhausted());
  do_work(decode);
  EXPECT_EQ(decode.done_elements(), 0u);
}

TEST(NoMemory, OnAnyThreadIsAnErrorOfTheWork) {
  if (!memory_can_end) GTEST_SKIP() << "ThreadSanitizer has its own new";
  const Format format = format_named("Q8_0");
  BlockSelection selection;
  selection.format = format;
  selection.n_blocks = 100000;
  const std::vector<uint8_t> blocks = random_blocks(format, selection.n_blocks);
  std::vector<uint8_t> expected = plain_result(selection, blocks.data());
  unify_nans(expected, selection.out);
  const BlockFile stored(blocks);
  const auto file = stored.open(Access::kRead);  // into scratch, which takes memory
  size_t n_failed = 0;
  bool was_felt = true;
  for (size_t n = 0; was_felt; ++n) {
    HelperThreads pool;
    std::vector<uint8_t> scratch;
    std::vector<uint8_t> result(expected.size());
    ChunkedDecode work(BlockFile::source(*file), selection, result.data());
    {
      const OutOfMemory limit(n, OutOfMemory::On::kAllThreads);
      pool.run(2, scratch,
               [&](std::vector<uint8_t>& its_scratch) { work.work(its_scratch, [] { return false; }); });
      was_felt = limit.was_felt();
    }
    if (!work.failure()) {
      unify_nans(result, selection.out);
      EXPECT_TRUE(result == expected);
      continue;
    }
    EXPECT_EQ(work.failure()->code, ErrorCode::kOutOfMemory);
    ++n_failed;
  }
  EXPECT_GT(n_failed, 0u);
}

}  // namespace
}  // namespace gguf::test
