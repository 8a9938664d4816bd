// Attention of some queries to one head of a cache: scores, softmax, and the weighted sum of the values.
//
// Scores of sixteen positions are computed together, from columns of keys. Sums of values are cut by pages,
// so that none is over more than 256 positions. Several queries are worked on together where all see a
// position: what is loaded and converted serves each of them.
#pragma once

#include "network/elementary.h"
#include "network/kernels.h"
#include "network/vectors.h"

namespace gguf {
namespace {
namespace attending {

// As many sums as registers hold: queries together, and of each so many times sixteen positions or columns.
#if defined(__aarch64__)
constexpr int kTogether = 4, kWide = 1, kWideOfOne = 4;
#else
constexpr int kTogether = lanes::kLanes == 4 ? 2 : 4;
constexpr int kWide = lanes::kLanes == 16 ? 4 : 1;
constexpr int kWideOfOne = lanes::kLanes == 4 ? 2 : 4;
#endif
// A score is a sum of sums of so many products: rounding grows with the length of a sum.
constexpr uint64_t kSummed = 16;
static_assert(kTogether <= static_cast<int>(kMostQueriesTogether), "");

// What the numbers of a cache are stored as.
struct F32 {
  static constexpr uint64_t kBytes = 4;
  static constexpr bool kScaled = false;
  GGUF_INLINE static Sixteen load(const uint8_t* p) { return lanes::sixteen_of(simd::load_f32(p)); }
};
struct F16 {
  static constexpr uint64_t kBytes = 2;
  static constexpr bool kScaled = false;
  GGUF_INLINE static Sixteen load(const uint8_t* p) { return lanes::sixteen_of(simd::load_f16(p)); }
};
struct Q8_0 {
  static constexpr uint64_t kBytes = 1;
  static constexpr bool kScaled = true;
  GGUF_INLINE static Sixteen load(const uint8_t* p) { return lanes::sixteen_of(simd::load_int8(p)); }
};

/** The scores of kRows queries and kWidth times sixteen positions, from `group` of a page on, to scores[row].
 */
template <class Number, int kRows, int kWidth>
GGUF_INLINE void score(const PageHead& page, uint64_t group, uint64_t width, const float* const* x,
                       float* const* scores) {
  constexpr uint64_t kGroup = KvCache::kGroup, kRun = KvCache::kRun;
  for (int r = 0; r < kRows; ++r) std::fill_n(scores[r], 16 * kWidth, 0.0f);
  const uint8_t* keys = page.keys + group * width * kGroup * Number::kBytes;
  const float* const scales = Number::kScaled ? page.key_scales + group * (width / kRun) * kGroup : nullptr;
  for (uint64_t begin = 0; begin < width; begin += kSummed) {
    Sixteen sums[kRows][kWidth];
    GGUF_UNROLL
    for (int r = 0; r < kRows; ++r) {
      GGUF_UNROLL
      for (int g = 0; g < kWidth; ++g) sums[r][g] = all16(0);
    }
    const uint64_t end = std::min(width, begin + kSummed);
    for (uint64_t w = begin; w < end; ++w, keys += kGroup * Number::kBytes) {
      Sixteen key[kWidth];
      GGUF_UNROLL
      for (int g = 0; g < kWidth; ++g) {
        key[g] = Number::load(keys + static_cast<uint64_t>(g) * width * kGroup * Number::kBytes);
        if constexpr (Number::kScaled) {
          key[g] = key[g] * load16(scales + (static_cast<uint64_t>(g) * (width / kRun) + w / kRun) * kGroup);
        }
      }
      GGUF_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Sixteen query = all16(x[r][w]);
        GGUF_UNROLL
        for (int g = 0; g < kWidth; ++g) sums[r][g] = sums[r][g] + query * key[g];
      }
    }
    GGUF_UNROLL
    for (int r = 0; r < kRows; ++r) {
      GGUF_UNROLL
      for (int g = 0; g < kWidth; ++g) {
        lanes::store(scores[r] + 16 * g, load16(scores[r] + 16 * g) + sums[r][g]);
      }
    }
  }
}

/** The scores of kRows queries and groups `begin` to `end` of a page. */
template <class Number, int kRows>
GGUF_INLINE void score_groups(const PageHead& page, uint64_t begin, uint64_t end, uint64_t width,
                              const Query* queries, float* scores, uint64_t stride) {
  constexpr int kWidth = kRows == 1 ? kWideOfOne : kWide;
  const float* x[kRows];
  float* to[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = queries[r].x;
    to[r] = scores + static_cast<uint64_t>(r) * stride;
  }
  uint64_t group = begin;
  for (; group + kWidth <= end; group += kWidth) {
    score<Number, kRows, kWidth>(page, group, width, x, to);
    for (int r = 0; r < kRows; ++r) to[r] += 16 * kWidth;
  }
  for (; group < end; ++group) {
    score<Number, kRows, 1>(page, group, width, x, to);
    for (int r = 0; r < kRows; ++r) to[r] += 16;
  }
}

/** Scales scores of whole groups, of which those outside of what is seen become -infinity. Returns the
 * largest. */
GGUF_INLINE float scale_seen(const Query& query, float scale, float cap, float* scores) {
  const uint64_t start = query.first / 16 * 16, n = query.n_scores();
  scale_and_cap(scores, n, scale, cap, scores);
  std::fill_n(scores, query.first - start, -INFINITY);
  std::fill_n(scores + (query.last - start) + 1, n - 1 - (query.last - start), -INFINITY);
  const float max = lanes::max_of(scores, n);
  return query.sink != nullptr && *query.sink > max ? *query.sink : max;
}

/** Makes these scores weights. Returns their sum. */
GGUF_INLINE float weigh(const Query& query, float max, float* scores) {
  const float sum = exponentiate(scores, query.n_scores(), max);
  if (query.sink == nullptr) return sum;
  alignas(64) float sinks[16];
  lanes::store(sinks, lanes::exp(all16(*query.sink - max)));
  return sum + sinks[0];
}

/** Adds the values of positions `begin` to `end` of a page, times their weights, to sums of kWidth times
 * sixteen columns. */
template <class Number, int kRows, int kWidth>
GGUF_INLINE void add_values(const PageHead& page, uint64_t begin, uint64_t end, uint64_t column,
                            uint64_t value_stride, uint64_t n_runs, const float* const* weights,
                            float* const* sums) {
  Sixteen sum[kRows][kWidth];
  GGUF_UNROLL
  for (int r = 0; r < kRows; ++r) {
    GGUF_UNROLL
    for (int c = 0; c < kWidth; ++c) sum[r][c] = load16(sums[r] + column + 16 * c);
  }
  const uint8_t* values = page.values + (begin * value_stride + column) * Number::kBytes;
  for (uint64_t t = begin; t < end; ++t, values += value_stride * Number::kBytes) {
    Sixteen value[kWidth];
    GGUF_UNROLL
    for (int c = 0; c < kWidth; ++c) {
      value[c] = Number::load(values + 16 * static_cast<uint64_t>(c) * Number::kBytes);
      if constexpr (Number::kScaled) {
        const uint64_t run = (column + 16 * static_cast<uint64_t>(c)) / KvCache::kRun;
        value[c] = value[c] * all16(page.value_scales[t * n_runs + run]);
      }
    }
    GGUF_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Sixteen weight = all16(weights[r][t - begin]);
      GGUF_UNROLL
      for (int c = 0; c < kWidth; ++c) sum[r][c] = sum[r][c] + weight * value[c];
    }
  }
  GGUF_UNROLL
  for (int r = 0; r < kRows; ++r) {
    GGUF_UNROLL
    for (int c = 0; c < kWidth; ++c) lanes::store(sums[r] + column + 16 * c, sum[r][c]);
  }
}

/** The same for all columns. */
template <class Number, int kRows>
GGUF_INLINE void add_rows(const PageHead& page, uint64_t begin, uint64_t end, uint64_t value_stride,
                          uint64_t n_runs, const float* const* weights, float* const* sums) {
  constexpr int kWidth = kRows == 1 ? kWideOfOne : kWide;
  uint64_t column = 0;
  for (; column + 16 * kWidth <= value_stride; column += 16 * kWidth) {
    add_values<Number, kRows, kWidth>(page, begin, end, column, value_stride, n_runs, weights, sums);
  }
  for (; column < value_stride; column += 16) {
    add_values<Number, kRows, 1>(page, begin, end, column, value_stride, n_runs, weights, sums);
  }
}

/** All scores of kRows queries. Those of one query begin with the group of `start`. */
template <class Number, int kRows>
GGUF_INLINE void score_all(const KvCache& cache, uint64_t head, const Query* queries, uint64_t start,
                           float* scores, uint64_t stride) {
  constexpr uint64_t kGroups = KvCache::kPositions / KvCache::kGroup;
  const uint64_t begin = queries[0].first / 16, end = queries[kRows - 1].last / 16 + 1;
  for (uint64_t group = begin; group < end;) {
    const uint64_t page = group / kGroups, last = std::min(end, (page + 1) * kGroups);
    score_groups<Number, kRows>(cache.head_of(page, head), group % kGroups, last - page * kGroups,
                                cache.shape().key_width, queries, scores + 16 * group - start, stride);
    group = last;
  }
}

/**
 * The outputs of up to kTogether queries, whose weights begin with the group of `start`. `sums` has room for
 * twice so many rows of value_stride() numbers.
 */
template <class Number>
GGUF_INLINE void add_up(const KvCache& cache, uint64_t head, const Query* queries, int n, uint64_t start,
                        const float* weights, uint64_t stride, const float* divisors, float* sums) {
  constexpr uint64_t kPositions = KvCache::kPositions;
  const uint64_t value_stride = cache.value_stride(), value_width = cache.shape().value_width;
  const uint64_t n_runs = value_width / KvCache::kRun;
  float *total[kTogether], *part[kTogether];
  for (int r = 0; r < n; ++r) {
    total[r] = sums + 2 * static_cast<uint64_t>(r) * value_stride;
    part[r] = total[r] + value_stride;
    std::fill_n(total[r], value_stride, 0.0f);
  }
  for (uint64_t t = queries[0].first; t <= queries[n - 1].last;) {
    const uint64_t page_end = t / kPositions * kPositions + kPositions;
    const PageHead page = cache.head_of(t / kPositions, head);
    for (int r = 0; r < n; ++r) std::fill_n(part[r], value_stride, 0.0f);
    const uint64_t page_start = t;
    while (t < page_end && t <= queries[n - 1].last) {
      // Both bounds ascend, so that queries that see a position are neighbours, up to the next bound.
      uint64_t end = page_end;
      int from = 0, to = 0;
      for (int r = 0; r < n; ++r) {
        if (queries[r].last < t) {
          from = r + 1;
        } else {
          end = std::min(end, queries[r].last + 1);
        }
        if (queries[r].first <= t) {
          to = r + 1;
        } else {
          end = std::min(end, queries[r].first);
        }
      }
      const float* weight[kTogether];
      for (int r = 0; r < n; ++r) weight[r] = weights + static_cast<uint64_t>(r) * stride + t - start;
      const uint64_t begin = t % kPositions, stop = begin + (end - t);
      if (to - from == kTogether) {
        add_rows<Number, kTogether>(page, begin, stop, value_stride, n_runs, weight, part);
      } else {
        for (int r = from; r < to; ++r) {
          add_rows<Number, 1>(page, begin, stop, value_stride, n_runs, weight + r, part + r);
        }
      }
      t = end;
    }
    for (int r = 0; r < n; ++r) {
      // A page that a query does not see has no part in its sum.
      if (queries[r].first < page_end && queries[r].last >= page_start) {
        lanes::map(total[r], part[r], value_stride, total[r],
                   [&](const Sixteen& a, const Sixteen& b) GGUF_INLINE_LAMBDA { return a + b; });
      }
    }
  }
  for (int r = 0; r < n; ++r) {
    const Sixteen divisor = all16(divisors[r]);
    lanes::map(total[r], value_width, queries[r].out,
               [&](const Sixteen& v) GGUF_INLINE_LAMBDA { return v / divisor; });
  }
}

template <class Number>
void attend(const KvCache& cache, uint64_t head, const Queries& all) {
  const uint64_t start = all.begin(), stride = all.stride();
  float *const scores = all.scratch, *const sums = scores + all.count * stride;
  for (uint64_t i = 0; i < all.count;) {
    const Query* const queries = all.queries + i;
    float* const its_scores = scores + i * stride;
    const int n = static_cast<int>(std::min<uint64_t>(kTogether, all.count - i));
    if (n == kTogether) {
      score_all<Number, kTogether>(cache, head, queries, start, its_scores, stride);
    } else {
      for (int r = 0; r < n; ++r) {
        score_all<Number, 1>(cache, head, queries + r, start, its_scores + static_cast<uint64_t>(r) * stride,
                             stride);
      }
    }
    // Step by step for all: what one waits for, a processor fills with the others.
    float maxima[kTogether], divisors[kTogether];
    const auto scores_of = [&](int r) GGUF_INLINE_LAMBDA {
      return its_scores + static_cast<uint64_t>(r) * stride + queries[r].first / 16 * 16 - start;
    };
    for (int r = 0; r < n; ++r) maxima[r] = scale_seen(queries[r], all.scale, all.cap, scores_of(r));
    for (int r = 0; r < n; ++r) divisors[r] = weigh(queries[r], maxima[r], scores_of(r));
    add_up<Number>(cache, head, queries, n, start, its_scores, stride, divisors, sums);
    i += static_cast<uint64_t>(n);
  }
}

}  // namespace attending

void attend(const KvCache& cache, uint64_t head, const Queries& queries) {
  switch (cache.shape().format.block_bytes) {
    case 4:
      return attending::attend<attending::F32>(cache, head, queries);
    case 2:
      return attending::attend<attending::F16>(cache, head, queries);
    default:
      return attending::attend<attending::Q8_0>(cache, head, queries);
  }
}

}  // namespace
}  // namespace gguf
