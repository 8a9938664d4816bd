// What lies between products: every instruction set against plain C++, on numbers of every kind; and
// attention to caches that were filled, cut and forked in different ways. test/network has the rules written
// again.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dequant/dequant.h"
#include "network/attention_units.h"
#include "network/kernels.h"
#include "test/native/dequant/test_isas.h"

namespace gguf {
namespace {

using Numbers = std::vector<float>;

std::mt19937 generator(1);

uint64_t below(uint64_t n) {
  return std::uniform_int_distribution<uint64_t>(0, n - 1)(generator);
}

Numbers gaussian(uint64_t n) {
  std::normal_distribution<float> normal;
  Numbers x(n);
  for (float& number : x) number = normal(generator);
  return x;
}

/** Of every size and sign, NaN and infinities among them. */
Numbers of_every_kind(uint64_t n) {
  Numbers x(n);
  for (float& number : x) {
    const auto bits = static_cast<uint32_t>(generator());
    std::memcpy(&number, &bits, sizeof number);
  }
  for (const float special : {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, -104.0f, 89.0f}) {
    x[below(n)] = special;
  }
  return x;
}

/** Where two results differ; a NaN equals any other. */
std::string difference(const Numbers& a, const Numbers& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0) {
      return "number " + std::to_string(i) + ": " + std::to_string(a[i]) + ", " + std::to_string(b[i]);
    }
  }
  return "";
}

class Network : public test::OnEveryIsa {
 protected:
  /** Calls f with the kernels in plain C++, and with those of this set. */
  template <class F>
  static std::string difference_of(uint64_t n, F f) {
    if (kScalarNetwork == nullptr) return "";
    Numbers expected(n), found(n);
    f(*kScalarNetwork, expected.data());
    f(network_kernels(), found.data());
    return difference(expected, found);
  }
};

TEST_P(Network, EqualsPlainCpp) {
  for (uint64_t width = 1; width < 200; width += 1 + width / 40) {
    const uint64_t n = width;
    for (const bool is_wild : {false, true}) {
      SCOPED_TRACE(std::to_string(width) + (is_wild ? " of every kind" : ""));
      const Numbers x = is_wild ? of_every_kind(n) : gaussian(n);
      const Numbers y = gaussian(n), z = gaussian(2 * n);
      const float *const a = x.data(), *const b = y.data(), *const c = z.data();
      const auto same = [&](auto f) { EXPECT_EQ(difference_of(n, f), ""); };
      same([&](const NetworkKernels& k, float* out) { k.rms_norm(a, b, n, 1e-5f, out); });
      same([&](const NetworkKernels& k, float* out) { k.rms_norm(a, nullptr, n, 0, out); });
      same([&](const NetworkKernels& k, float* out) { k.layer_norm(a, b, c, n, 1e-5f, out); });
      same([&](const NetworkKernels& k, float* out) { k.layer_norm(a, nullptr, nullptr, n, 0, out); });
      same([&](const NetworkKernels& k, float* out) { k.normalize(a, n, out); });
      same([&](const NetworkKernels& k, float* out) { k.softmax(a, n, 0.3f, 2, out); });
      same([&](const NetworkKernels& k, float* out) { k.softmax(a, n, 1, 0, out); });
      same([&](const NetworkKernels& k, float* out) {
        const Powers powers = k.powers(a, n);
        out[0] = powers.max + powers.sum;
      });
      same([&](const NetworkKernels& k, float* out) {
        std::copy_n(a, n, out);
        k.add(out, b, n);
        k.scale(out, n, 0.7f);
      });
      for (int kind = 0; kind < kActivations; ++kind) {
        same([&](const NetworkKernels& k, float* out) { k.activate[kind](a, nullptr, n, out); });
        same([&](const NetworkKernels& k, float* out) { k.activate[kind](a, b, n, out); });
      }
      for (const int kind : {0, 1}) {
        same([&](const NetworkKernels& k, float* out) { k.rotate[kind](a, n / 2, c, out); });
      }
    }
  }
}

/** A cache with random tokens, and queries of the last ones. */
struct Case {
  uint64_t heads, length, n;
  CacheShape shape;
  Numbers keys, values, queries, sinks;
  Attention attention;

  explicit Case(uint32_t type) {
    const uint64_t block = find_format(type)->block_elements;
    const auto width = [&] { return block * (1 + below(block == 1 ? 70 : 3)); };
    shape = {*find_format(type), 1 + below(3), width(), width()};
    heads = shape.heads * (1 + below(5));
    length = 1 + below(600);
    n = 1 + below(std::min<uint64_t>(length, 50));
    keys = gaussian(length * shape.heads * shape.key_width);
    values = gaussian(length * shape.heads * shape.value_width);
    queries = gaussian(n * heads * shape.key_width);
    sinks = gaussian(heads);
    attention.heads = heads;
    attention.scale = 0.2f;
    attention.cap = below(2) == 0 ? 0 : 5.0f;
    attention.window = below(2) == 0 ? 0 : 1 + below(300);
    attention.sinks = below(2) == 0 ? nullptr : sinks.data();
  }

  void append(KvCache& cache, uint64_t from, uint64_t to) const {
    const uint64_t k = shape.heads * shape.key_width, v = shape.heads * shape.value_width;
    ASSERT_FALSE(cache.append(keys.data() + from * k, values.data() + from * v, to - from));
  }

  /** The outputs of queries `from` to `to`, with the cache that they see last. */
  void attend(const KvCache& cache, uint64_t from, uint64_t to, Numbers& out) const {
    Attention part = attention;
    part.queries = queries.data() + from * heads * shape.key_width;
    part.n_tokens = to - from;
    part.out = out.data() + from * heads * shape.value_width;
    std::vector<uint8_t> scratch(part.scratch_bytes(cache));
    for (uint64_t unit = 0; unit < part.n_units(cache); ++unit) part.do_unit(cache, unit, scratch.data());
  }
};

constexpr uint32_t kCacheTypes[] = {0, 1, 8};

TEST_P(Network, AttentionIsTheSameInPlainCppAndForOneTokenAtATime) {
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    Case c(kCacheTypes[i % 3]);
    KvCache whole(c.shape), grown(c.shape);
    c.append(whole, 0, c.length);
    c.attention.causal = i % 5 != 0;
    Numbers expected(c.n * c.heads * c.shape.value_width), found(expected.size());
    use_isa(available_isas().back());
    c.attend(whole, 0, c.n, expected);
    use_isa(GetParam());
    c.attend(whole, 0, c.n, found);
    EXPECT_EQ(difference(expected, found), "");
    if (!c.attention.causal) continue;
    c.append(grown, 0, c.length - c.n);
    for (uint64_t k = 0; k < c.n; ++k) {
      c.append(grown, c.length - c.n + k, c.length - c.n + k + 1);
      c.attend(grown, k, k + 1, found);
    }
    EXPECT_EQ(difference(expected, found), "");
  }
}

TEST(KvCache, KeepsWhatItIsGivenThroughForksAndCuts) {
  for (const uint32_t type : kCacheTypes) {
    const Case c(type);
    const auto bytes_of = [&](const KvCache& cache) {
      std::vector<uint8_t> keys(cache.length() * c.shape.key_bytes());
      std::vector<uint8_t> values(cache.length() * c.shape.value_bytes());
      cache.read(0, cache.length(), keys.data(), values.data());
      keys.insert(keys.end(), values.begin(), values.end());
      return keys;
    };
    KvCache cache(c.shape);
    c.append(cache, 0, c.length);
    const std::vector<uint8_t> whole = bytes_of(cache);
    KvCache fork = cache;
    const uint64_t kept = c.length / 2;
    fork.truncate(kept);
    fork.truncate(c.length);
    EXPECT_EQ(fork.length(), kept);
    const std::vector<uint8_t> cut = bytes_of(fork);
    c.append(fork, 0, c.length - kept);
    EXPECT_EQ(bytes_of(cache), whole) << "a fork has written to a page that it shares";
    fork.truncate(kept);
    EXPECT_EQ(bytes_of(fork), cut);
    c.append(fork, kept, c.length);
    EXPECT_EQ(bytes_of(fork), whole);
    KvCache restored(c.shape);
    restored.restore(whole.data(), whole.data() + c.length * c.shape.key_bytes(), c.length);
    EXPECT_EQ(bytes_of(restored), whole);
  }
}

TEST(KvCache, AppendsNothingWhereANumberCannotBeHeld) {
  KvCache cache({*find_format(8), 1, 32, 32});
  Numbers keys(64, 1.0f), values(64, 1.0f);
  values[40] = NAN;
  const Status failure = cache.append(keys.data(), values.data(), 2);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::kRange);
  EXPECT_EQ(failure->detail.rfind("values: numbers[40]", 0), 0u) << failure->detail;
  EXPECT_EQ(cache.length(), 0u);
}

TEST(KvCache, HasALargestPage) {
  const Format format = *find_format(0);
  EXPECT_EQ(KvCache::page_bytes({format, 2, 64, 48}), 2u * 256 * (64 + 48) * 4);
  EXPECT_EQ(KvCache::page_bytes({format, 1, 1 << 22, 1 << 22}), 0u);
  EXPECT_EQ(KvCache::page_bytes({format, 1 << 20, 64, 64}), 0u);
  EXPECT_EQ(KvCache::page_bytes({format, UINT64_MAX, UINT64_MAX, UINT64_MAX}), 0u);
}

INSTANTIATE_TEST_SUITE_P(AllSets, Network, testing::ValuesIn(available_isas()), test::isa_name_of);

}  // namespace
}  // namespace gguf
