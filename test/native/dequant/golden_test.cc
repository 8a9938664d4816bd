// Every format with expected values in golden.gguf, on every instruction set of this machine: equal to the
// bit.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/file.h"
#include "core/parse.h"
#include "dequant/dequant.h"
#include "dequant/half.h"
#include "test/native/dequant/test_isas.h"

namespace gguf::test {
namespace {

TypeSize type_size_of(uint32_t type) {
  const Format* format = find_format(type);
  return format == nullptr ? TypeSize{} : TypeSize{format->block_elements, format->block_bytes};
}

class Golden : public OnEveryIsa {
 protected:
  void SetUp() override {
    OnEveryIsa::SetUp();
    const std::string path = GGUF_NATIVE_REPOSITORY "/test/fixtures/golden.gguf";
    auto opened = File::open(path, Access::kMap);
    ASSERT_TRUE(opened.ok()) << path << ": " << opened.error().detail;
    file_ = opened.value();
    auto parsed = parse_header(file_->data(), file_->size(), file_->size(), type_size_of, {});
    ASSERT_TRUE(parsed.result.ok()) << parsed.result.error().detail;
    header_ = std::move(parsed.result.value());
  }

  const TensorInfo* find(const std::string& name) const {
    for (const TensorInfo& tensor : header_.tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  const uint8_t* bytes(const TensorInfo& tensor) const { return file_->data() + tensor.offset; }

  std::shared_ptr<File> file_;
  Header header_;
};

/** The bits of `expected` in another output type. */
template <class Element>
Element convert(float expected, Out out) {
  if constexpr (std::is_same_v<Element, float>) {
    return expected;
  } else {
    return out == Out::kFloat16 ? float_to_half(expected) : float_to_bfloat16(expected);
  }
}

bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

bool same_half(uint16_t a, uint16_t b, Out out) {
  const int infinity = out == Out::kFloat16 ? 0x7c00 : 0x7f80;
  return a == b || ((a & 0x7fff) > infinity && (b & 0x7fff) > infinity);
}

template <class Element>
void expect_golden(const Format& format, Out out, const uint8_t* src, const float* expected, uint64_t n) {
  std::vector<Element> actual(n);
  dequantize(format, out, Store::kPlain, false, src, n / format.block_elements, actual.data());
  uint64_t n_off = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const Element want = convert<Element>(expected[i], out);
    bool equal;
    if constexpr (std::is_same_v<Element, float>) {
      equal = same(actual[i], want);
    } else {
      equal = same_half(actual[i], want, out);
    }
    if (!equal && ++n_off <= 3)
      ADD_FAILURE() << format.name << "[" << i << "]: " << actual[i] << ", not " << want;
  }
  EXPECT_EQ(n_off, 0u) << format.name << " of " << n;
}

/** "Q4_K.gaussian.f32" is what ggml makes of "Q4_K.gaussian". */
bool is_result(const std::string& name) {
  const std::string suffix = ".f32";
  return name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

TEST_P(Golden, EqualsGgmlToTheBit) {
  int n_compared = 0, n_results = 0;  // which formats have results: test/support/golden.ts
  for (const TensorInfo& tensor : header_.tensors) {
    n_results += is_result(std::string(tensor.name)) ? 1 : 0;
    const TensorInfo* expected = find(std::string(tensor.name) + ".f32");
    const Format* format = find_format(tensor.type);
    if (expected == nullptr || format == nullptr) continue;
    SCOPED_TRACE(std::string(tensor.name));
    const auto* numbers = reinterpret_cast<const float*>(bytes(*expected));
    expect_golden<float>(*format, Out::kFloat32, bytes(tensor), numbers, tensor.n_elements);
    expect_golden<uint16_t>(*format, Out::kFloat16, bytes(tensor), numbers, tensor.n_elements);
    expect_golden<uint16_t>(*format, Out::kBFloat16, bytes(tensor), numbers, tensor.n_elements);
    ++n_compared;
  }
  EXPECT_GT(n_compared, 0);
  EXPECT_EQ(n_compared, n_results) << "a result without its blocks, or of a type that is not known";
}

INSTANTIATE_TEST_SUITE_P(Isas, Golden, testing::ValuesIn(available_isas()), isa_name_of);

}  // namespace
}  // namespace gguf::test
