// What lies between products, on every instruction set of this machine against plain C++: any numbers, widths
// and options. And attention of a cache that was filled in any steps, cut and forked: all tokens at once
// against one at a time. Each run is one function.
//
//   | function | width | options | seed: 3 bytes | bytes ...
//
// The options: six bits for the alignment, two that functions read.
// The bytes given are the first numbers; the others are made from the seed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dequant/dequant.h"
#include "network/attention_units.h"
#include "network/kernels.h"
#include "test/fuzz/memory.h"
#include "test/fuzz/random.h"
#include "test/fuzz/require.h"

namespace gguf::fuzz {
namespace {

constexpr size_t kOptionBytes = 6;
constexpr size_t kMaxWidth = 700;

using Numbers = std::vector<float>;

/** Ordinary numbers, and one in `wild` of any kind. */
void make(float* x, size_t n, size_t wild, Random& random) {
  for (size_t i = 0; i < n; ++i) {
    const auto bits = static_cast<uint32_t>(random.bits());
    x[i] = static_cast<float>(random.below(2001)) / 1000.0f - 1.0f;
    if (random.one_in(wild)) std::memcpy(x + i, &bits, sizeof bits);
  }
}

bool same(const float* a, const float* b, size_t n) {
  return same_numbers<uint32_t>(reinterpret_cast<const uint8_t*>(a), reinterpret_cast<const uint8_t*>(b), n,
                                0x7f800000);
}

/** Function number `function` of `n` numbers at `x`, with others at `y`, which has twice as many. */
void call(const NetworkKernels& k, size_t function, const float* x, const float* y, uint64_t n, bool more,
          bool other, float* out) {
  if (function < 2 * kActivations) {
    return k.activate[function / 2](x, function % 2 == 0 ? nullptr : y, n, out);
  }
  Powers powers;
  std::copy_n(x, n, out);  // all but some of it is written
  switch (function - 2 * kActivations) {
    case 0:
      return k.rms_norm(x, more ? y : nullptr, n, other ? 1e-5f : 0, out);
    case 1:
      return k.layer_norm(x, more ? y : nullptr, other ? y + n : nullptr, n, 1e-5f, out);
    case 2:
      return k.normalize(x, n, out);
    case 3:
      return k.softmax(x, n, more ? 0.3f : 1, other ? 2 : 0, out);
    case 4:
      powers = k.powers(x, n);
      out[0] = powers.max;
      if (n > 1) out[1] = powers.sum;
      return;
    case 5:
      k.add(out, y, n);
      return k.scale(out, n, y[0]);
    default:
      return k.rotate[more](x, n / 2, y, out);
  }
}
constexpr size_t kFunctions = 2 * kActivations + 7;

void test_function(size_t function, size_t n, uint8_t options, const uint8_t* given, size_t n_given,
                   Random& random) {
  const Memory x(options % kLine / 4 * 4, n * sizeof(float)), y(0, 2 * n * sizeof(float));
  auto* const numbers = reinterpret_cast<float*>(x.data());
  auto* const others = reinterpret_cast<float*>(y.data());
  make(numbers, n, 16, random);
  make(others, 2 * n, 64, random);
  if (n_given > 0) std::memcpy(x.data(), given, std::min(n_given, n * sizeof(float)));
  const Numbers kept(numbers, numbers + n);
  const bool more = (options & 64) != 0, other = (options & 128) != 0;
  Numbers expected(n);
  call(*kScalarNetwork, function, numbers, others, n, more, other, expected.data());
  for (const char* isa : available_isas()) {
    use_isa(isa);
    const Memory out(sizeof(float), n * sizeof(float));
    auto* const found = reinterpret_cast<float*>(out.data());
    call(network_kernels(), function, numbers, others, n, more, other, found);
    FUZZ_REQUIRE(out.untouched_before());
    FUZZ_REQUIRE(same(found, expected.data(), n));
    call(network_kernels(), function, numbers, others, n, more, other, numbers);  // in place
    FUZZ_REQUIRE(same(numbers, expected.data(), n));
    std::copy(kept.begin(), kept.end(), numbers);
  }
}

void attend(const KvCache& cache, const Attention& attention) {
  std::vector<uint8_t> scratch(attention.scratch_bytes(cache));
  for (uint64_t unit = 0; unit < attention.n_units(cache); ++unit) {
    attention.do_unit(cache, unit, scratch.data());
  }
}

/** Adds tokens to a cache in steps, some of which are taken back, or go to a fork of it. */
bool fill_cache(KvCache& cache, const float* keys, const float* values, uint64_t length, Random& random) {
  const uint64_t k = cache.shape().heads * cache.shape().key_width;
  const uint64_t v = cache.shape().heads * cache.shape().value_width;
  while (cache.length() < length) {
    const uint64_t at = cache.length(), n = 1 + random.below(static_cast<size_t>(length - at));
    KvCache before = cache;
    if (cache.append(keys + at * k, values + at * v, n)) {
      FUZZ_REQUIRE(cache.length() == at);
      return false;
    }
    if (random.one_in(4)) cache.truncate(random.below(static_cast<size_t>(cache.length() + 1)));
    if (random.one_in(4)) FUZZ_REQUIRE(!before.append(keys, values, 1));
  }
  return true;
}

void test_attention(size_t type, uint8_t size, uint8_t options, Random& random) {
  constexpr uint32_t kTypes[] = {0, 1, 8};
  const Format& format = *find_format(kTypes[type]);
  const auto width = [&] {
    return format.block_elements * (1 + random.below(format.block_elements == 1 ? 70 : 3));
  };
  const CacheShape shape{format, 1 + random.below(2), width(), width()};
  const uint64_t heads = shape.heads * (1 + random.below(3)), length = 1 + size * size / 150;
  const uint64_t n = 1 + random.below(static_cast<size_t>(std::min<uint64_t>(length, 6)));
  const size_t wild = (options & 128) != 0 ? 4000 : 1u << 30;
  const auto numbers = [&](uint64_t count) {
    Numbers x(static_cast<size_t>(count));
    make(x.data(), x.size(), wild, random);
    return x;
  };
  const Numbers keys = numbers(length * shape.heads * shape.key_width);
  const Numbers values = numbers(length * shape.heads * shape.value_width);
  const Numbers queries = numbers(n * heads * shape.key_width), sinks = numbers(heads);
  Attention all;
  all.queries = queries.data();
  all.n_tokens = n;
  all.heads = heads;
  all.scale = 0.2f;
  all.cap = random.one_in(2) ? 5.0f : 0;
  all.window = random.one_in(2) ? 1 + random.below(300) : 0;
  all.causal = (options & 64) != 0;
  all.sinks = random.one_in(2) ? sinks.data() : nullptr;
  Numbers expected;
  for (const char* isa : available_isas()) {
    use_isa(isa);
    KvCache cache(shape);
    if (!fill_cache(cache, keys.data(), values.data(), length, random)) return;
    Numbers found(n * heads * shape.value_width);
    all.out = found.data();
    attend(cache, all);
    if (expected.empty()) expected = found;
    FUZZ_REQUIRE(same(found.data(), expected.data(), found.size()));
    if (!all.causal) continue;
    for (uint64_t i = n; i-- > 0;) {
      Attention one = all;
      one.n_tokens = 1;
      one.queries += i * heads * shape.key_width;
      one.out += i * heads * shape.value_width;
      cache.truncate(length - n + i + 1);
      attend(cache, one);
    }
    FUZZ_REQUIRE(same(found.data(), expected.data(), found.size()));
  }
}

}  // namespace
}  // namespace gguf::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gguf::fuzz;
  if (size < kOptionBytes) return -1;
  const size_t function = data[0] % (kFunctions + 3);
  Random random(data[3] | data[4] << 8 | data[5] << 16);
  if (function >= kFunctions) {
    test_attention(function - kFunctions, data[1], data[2], random);
  } else {
    test_function(function, 1 + data[1] * kMaxWidth / 256, data[2], data + kOptionBytes, size - kOptionBytes,
                  random);
  }
  return 0;
}
