#include "core/system_codes.h"

#include <gtest/gtest.h>

#ifndef _WIN32
#include <cerrno>
#else
#include "core/windows_api.h"
#endif

namespace gguf::test {
namespace {

TEST(SystemCodes, HaveTheNamesThatNodeUses) {
#ifdef _WIN32
  EXPECT_STREQ(system_code_name(ERROR_FILE_NOT_FOUND), "ENOENT");
  EXPECT_STREQ(system_code_name(ERROR_SHARING_VIOLATION), "EBUSY");
#else
  EXPECT_STREQ(system_code_name(ENOENT), "ENOENT");
  EXPECT_STREQ(system_code_name(EACCES), "EACCES");
  EXPECT_STREQ(system_code_name(EISDIR), "EISDIR");
  EXPECT_STREQ(system_code_name(ETXTBSY), "ETXTBSY");
#endif
  EXPECT_STREQ(system_code_name(0), "UNKNOWN");
  EXPECT_STREQ(system_code_name(123456), "UNKNOWN");
}

}  // namespace
}  // namespace gguf::test
