#include "core/text.h"

#include <gtest/gtest.h>

#include "core/result.h"
#include "core/system_codes.h"

namespace gguf::test {
namespace {

TEST(QuoteName, PlainTextIsShownAsItIs) {
  EXPECT_EQ(quote_name("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(quote_name(""), "''");
  EXPECT_EQ(quote_name("größer 大 😀"), "'größer 大 😀'");
}

TEST(QuoteName, ControlCharactersAreEscaped) {
  EXPECT_EQ(quote_name("a\nb"), "'a\\nb'");
  EXPECT_EQ(quote_name("\x1B[2J"), "'\\x1B[2J'");
  EXPECT_EQ(quote_name(std::string_view("\0\x7F", 2)), "'\\x00\\x7F'");
  EXPECT_EQ(quote_name("\xC2\x9B"), "'\\x9B'");        // CSI, in one code point
  EXPECT_EQ(quote_name("\xE2\x80\xAE"), "'\\u202E'");  // right-to-left override
  EXPECT_EQ(quote_name("it's \\ \"so\""), "'it\\'s \\\\ \"so\"'");
}

TEST(QuoteName, WhatIsInvisibleIsEscaped) {
  EXPECT_EQ(quote_name("a\xE2\x80\x8B"
                       "b"),
            "'a\\u200Bb'");                                         // zero-width space
  EXPECT_EQ(quote_name("\xC2\xAD"), "'\\u00AD'");                   // soft hyphen
  EXPECT_EQ(quote_name("\xE3\x85\xA4"), "'\\u3164'");               // Hangul filler
  EXPECT_EQ(quote_name("\xEF\xB8\x8F"), "'\\uFE0F'");               // variation selector
  EXPECT_EQ(quote_name("\xF3\xA0\x81\x81"), "'\\u{E0041}'");        // a tag
  EXPECT_EQ(quote_name("\xF0\x9F\x98\x80"), "'\xF0\x9F\x98\x80'");  // what is beside is not
}

TEST(QuoteName, WhatIsNotUtf8IsEscaped) {
  EXPECT_EQ(quote_name("\xFF"), "'\\xFF'");
  EXPECT_EQ(quote_name("\xC3"), "'\\xC3'");           // cut off
  EXPECT_EQ(quote_name("\xC0\x80"), "'\\xC0\\x80'");  // longer than need be
  EXPECT_EQ(quote_name("\xE0\x80\x80"), "'\\xE0\\x80\\x80'");
  EXPECT_EQ(quote_name("\xED\xA0\x80"), "'\\xED\\xA0\\x80'");  // a surrogate
  EXPECT_EQ(quote_name("\xF4\x90\x80\x80"), "'\\xF4\\x90\\x80\\x80'");
}

TEST(QuoteName, LongNamesAreCut) {
  const std::string shown = quote_name(std::string(65535, 'n'));
  EXPECT_EQ(shown, "'" + std::string(96, 'n') + "...' (65535 bytes)");
  EXPECT_EQ(quote_name(std::string(96, 'n')), "'" + std::string(96, 'n') + "'");
}

TEST(SystemMessage, IsOneClause) {
  const std::string message = system_message(2);
  ASSERT_FALSE(message.empty());
  EXPECT_NE(message.back(), '.');
}

TEST(ErrorCode, Names) {
  EXPECT_STREQ(error_code_name(ErrorCode::kOpen), "ERR_GGUF_OPEN");
  EXPECT_STREQ(error_code_name(ErrorCode::kOutOfMemory), "ERR_GGUF_OUT_OF_MEMORY");
}

}  // namespace
}  // namespace gguf::test
