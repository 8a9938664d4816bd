// What the tests of the kernels share: each runs on every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dequant/dequant.h"

namespace gguf::test {

/** Makes every NaN the same one: which payload comes out is not promised. */
template <class Bits>
void unify_nans_of(std::vector<uint8_t>& numbers, Bits infinity) {
  for (size_t i = 0; i + sizeof(Bits) <= numbers.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, &numbers[i], sizeof bits);
    if (static_cast<Bits>(bits << 1) <= static_cast<Bits>(infinity << 1)) continue;
    bits = static_cast<Bits>(infinity + 1);
    std::memcpy(&numbers[i], &bits, sizeof bits);
  }
}
inline void unify_nans(std::vector<uint8_t>& numbers, Out out) {
  if (out == Out::kFloat32) return unify_nans_of<uint32_t>(numbers, 0x7f800000);
  unify_nans_of<uint16_t>(numbers, out == Out::kFloat16 ? 0x7c00 : 0x7f80);
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
