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

/** Whether golden.gguf has expected values for a format: ggml dequantizes it, and it is not what they are
 * stored in. */
inline bool has_golden(const Format& format) {
  const std::string name = format.name;
  return name != "F32" && name != "F64" && name != "Q8_1" && (name[0] != 'I' || name[1] == 'Q');
}

}  // namespace gguf::test
