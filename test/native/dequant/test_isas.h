// What the tests of the kernels share: each runs on every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "dequant/dequant.h"

namespace gguf::test {

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
