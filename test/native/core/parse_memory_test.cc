// Running out of memory while a header is parsed.
#include "test/native/core/allocation_meter.h"
#include "test/native/core/parse_support.h"

namespace gguf::test {
namespace {

TEST(ParseMemory, IsAnErrorAtWhicheverAllocationItEnds) {
  if (!memory_can_end) GTEST_SKIP() << "ThreadSanitizer has its own new";
  GgufWriter w;
  w.header(40, 0);
  for (uint32_t i = 0; i < 40; i++)
    w.tensor("the name of a tensor that is long " + std::to_string(i), {1}, kF32, 32 * i);
  w.pad().zeros(32 * 40);
  const std::vector<uint8_t> bytes = w.bytes();
  size_t n_allocations = 0;
  for (bool ok = false; !ok; n_allocations++) {
    const auto parse_with_little = [&] {
      const OutOfMemory limit(n_allocations);
      return parse_header(bytes.data(), bytes.size(), bytes.size(), type_size, {});
    };
    const ParseOutcome outcome = parse_with_little();
    ok = outcome.result.ok();
    if (ok) continue;
    ASSERT_EQ(describe(outcome),
              "ERR_GGUF_OUT_OF_MEMORY at " + std::to_string(Error::kNoOffset) + ": out of memory");
  }
  EXPECT_GE(n_allocations, 5u);  // AddressSanitizer has a new[] of its own, which is not counted
}

}  // namespace
}  // namespace gguf::test
