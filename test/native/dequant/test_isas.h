// What the tests of the kernels share: each runs on every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dequant/dequant.h"

namespace gguf::test {

/** Makes every NaN the same one: which payload comes out is not promised. */
inline void unify_nans(std::vector<uint8_t>& numbers, Out out) {
  const size_t size = out_bytes(out);
  for (size_t i = 0; i + size <= numbers.size(); i += size) {
    uint32_t bits = 0;
    std::memcpy(&bits, &numbers[i], size);
    const uint32_t infinity = out == Out::kFloat32 ? 0x7f800000 : out == Out::kFloat16 ? 0x7c00 : 0x7f80;
    const uint32_t magnitude = out == Out::kFloat32 ? 0x7fffffff : 0x7fff;
    if ((bits & magnitude) > infinity) bits = infinity + 1;
    std::memcpy(&numbers[i], &bits, size);
  }
}

/** A test with an instruction set for a parameter. */
class OnEveryIsa : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(use_isa(GetParam())); }
  void TearDown() override { use_isa(available_isas().front()); }
};

inline std::string isa_name_of(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace gguf::test
