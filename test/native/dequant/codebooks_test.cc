// The codebooks equal the tables that the formats are defined by, where these are beside the repository.
#include "dequant/codebooks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "dequant/levels.h"

namespace gguf::test {
namespace {

/** The numbers of `"values": [...]` of the table `name` in codebooks.json. */
std::vector<int> values_of(const std::string& json, const std::string& name) {
  std::vector<int> values;
  size_t at = json.find('"' + name + '"');
  if (at == std::string::npos) return values;
  at = json.find('[', json.find("\"values\"", at)) + 1;
  const size_t end = json.find(']', at);
  while (at < end) {
    size_t length = 0;
    values.push_back(std::stoi(json.substr(at, 16), &length));
    at += length;
    while (at < end && (json[at] == ',' || json[at] == ' ' || json[at] == '\n')) ++at;
  }
  return values;
}

class Codebooks : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("GGUF_NATIVE_SHARED_DATA");
    const std::string path =
        std::string(folder != nullptr ? folder : GGUF_NATIVE_REPOSITORY "/../shared/data") +
        "/codebooks.json";
    std::ifstream file(path);
    if (!file) GTEST_SKIP() << "there is no " << path;
    json_.assign(std::istreambuf_iterator<char>(file), {});
  }

  template <class Levels, class Row, size_t kRows, class Convert>
  void expect_equal(const Codebook<Row, kRows>& book, const std::string& name, Convert convert) {
    const std::vector<int> values = values_of(json_, name);
    constexpr size_t kColumns = sizeof(Row);
    ASSERT_EQ(values.size(), kRows * kColumns) << name;
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t k = 0; k < kColumns; ++k) {
        const int code = static_cast<int>(book.row[row] >> 8 * k & 0xff);
        ASSERT_EQ(convert(Levels::value(code)), values[row * kColumns + k])
            << name << " " << row << ", " << k;
      }
    }
  }

  std::string json_;
};

int same(int level) {
  return level;
}

TEST_F(Codebooks, EqualTheirDefinition) {
  expect_equal<Iq2>(kIq2xxsBook, "iq2xxs_grid", same);
  expect_equal<Iq2>(kIq2xsBook, "iq2xs_grid", same);
  expect_equal<Iq2>(kIq2sBook, "iq2s_grid", same);
  expect_equal<Iq3xxs>(kIq3xxsBook, "iq3xxs_grid", same);
  expect_equal<Iq3s>(kIq3sBook, "iq3s_grid", same);
  expect_equal<Iq1>(kIq1sBook, "iq1s_grid", [](int level) { return (level - 1) / 8; });  // 8 * (G + 1/8)
}

TEST_F(Codebooks, LevelsEqualTheirDefinition) {
  const std::vector<int> nonlinear = values_of(json_, "kvalues_iq4nl"), fp4 = values_of(json_, "kvalues_fp4");
  ASSERT_EQ(nonlinear.size(), 16u);
  ASSERT_EQ(fp4.size(), 16u);
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(Nonlinear4::value(code), nonlinear[code]);
    EXPECT_EQ(Fp4::value(code), fp4[code]);
  }
}

}  // namespace
}  // namespace gguf::test
