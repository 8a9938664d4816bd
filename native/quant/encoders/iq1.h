// IQ1_S and IQ1_M: rows of eight levels -1, 0 and 1, all shifted up or down by 1/8. Pictures of the blocks
// are above the kernels that dequantize them (dequant/kernels/codebooks.h).
//
// The best levels without a book are found exactly: numbers are sorted, and the first of them get the lowest
// level, the last the highest, for every place where the three parts can meet. How well they fit follows from
// sums over the first numbers. With a scale, the error is least where sum(w x l)^2 / sum(w l l) is greatest.
#pragma once

#include "quant/encoders/codebook_search.h"

namespace gguf {
namespace {
namespace lanes {

constexpr float kShift = 0.125f;
/** The levels, shifted up and shifted down. */
constexpr float kShifted[2][3] = {{-1 + kShift, kShift, 1 + kShift}, {-1 - kShift, -kShift, 1 - kShift}};

/** Where the parts meet in sorted numbers, how the levels are shifted, and the scale. */
struct Split {
  float scale, score;
  int from_middle, from_last;  // -1 where nothing was found
  int shifts;

  /** Takes the split if it fits better. */
  GGUF_INLINE void improve(float sum_xl, float sum_l2, int middle, int last, int which) {
    if (!(sum_l2 > 0.0f && sum_xl * sum_xl > score * sum_l2)) return;
    scale = sum_xl / sum_l2;
    score = scale * sum_xl;
    from_middle = middle;
    from_last = last;
    shifts = which;
  }
};

/** The numbers of the kCount at x in ascending order, the first of equal ones first. */
template <int kCount>
GGUF_INLINE void sort(const float* x, int* order) {
  for (int first = 0; first < kCount; first += kLanes) {
    const Float mine = load(x + first);
    const Int number = lane_numbers() + splat(first);
    Int rank = splat(0);
    for (int j = 0; j < kCount; ++j) {
      const Float other = splat(x[j]);
      rank = rank - ((other < mine) | ((other == mine) & (number > splat(j))));
    }
    int32_t ranks[kLanes];
    store(ranks, rank);
    // Ranks are below kCount, unless another thread writes into the numbers meanwhile.
    for (int i = 0; i < kLanes; ++i) order[ranks[i] & (kCount - 1)] = first + i;
  }
}

/** Sums of w x and of w over the first numbers of a sorted group. What is after the last is never good. */
template <int kCount>
struct Sums {
  float x[kCount + 1 + kLanes], w[kCount + 1 + kLanes];

  GGUF_INLINE void clear() {
    x[0] = w[0] = 0.0f;
    for (int i = kCount + 1; i < kCount + 1 + kLanes; ++i) x[i] = w[i] = 0.0f;
  }
};

GGUF_INLINE float larger(float a, float b) {
  return a > b ? a : b;
}

/**
 * A score to start from: a little below that of four likely splits. The search ends as if it started from
 * nothing, since what was best before a split that is clearly better does not matter, and one of the four is.
 * But it stops much less often for splits that are better than all before. Nothing is known where sums could
 * leave the range of normal floats.
 */
template <int kCount, class Score>
GGUF_INLINE float sure_score(float most, float sum_w, Score score) {
  float best = 0.0f;
  for (int first = kCount * 3 / 16; first <= kCount * 6 / 16; first += kCount / 16) {
    best = larger(best, score(first, kCount - first));
  }
  const bool normal = sum_w > 1e-12f && sum_w < 1e12f && most * sum_w < 1e15f && best * sum_w > 1e-25f;
  return normal ? best * 0.999f : -FLT_MAX;
}

/** Of IQ1_S: the whole group is shifted the same way. */
GGUF_NOINLINE Split best_split(const float* x, const float* w, const int* order) {
  constexpr int kCount = 32;
  Sums<kCount> sums;
  sums.clear();
  for (int j = 0; j < kCount; ++j) {
    const int i = order[j];
    sums.x[j + 1] = sums.x[j] + w[i] * x[i];
    sums.w[j + 1] = sums.w[j] + w[i];
  }
  // What the last part adds to both sums, by where it starts.
  float last_x[2][kCount + 1 + kLanes], last_w[2][kCount + 1 + kLanes];
  for (int s = 0; s < 2; ++s) {
    const float level = kShifted[s][2];
    for (int i = 0; i <= kCount; ++i) {
      last_x[s][i] = (sums.x[kCount] - sums.x[i]) * level;
      last_w[s][i] = (sums.w[kCount] - sums.w[i]) * level * level;
    }
    for (int i = kCount + 1; i < kCount + 1 + kLanes; ++i) {
      last_x[s][i] = 0.0f;
      last_w[s][i] = -FLT_MAX;
    }
  }

  const float most = larger(-x[order[0]], x[order[kCount - 1]]);
  const float sure = sure_score<kCount>(most, sums.w[kCount], [&](int middle, int last) GGUF_INLINE_LAMBDA {
    float best = 0.0f;
    for (int s = 0; s < 2; ++s) {
      const float* const level = kShifted[s];
      const float xl =
          sums.x[middle] * level[0] + (sums.x[last] - sums.x[middle]) * level[1] + last_x[s][last];
      const float l2 = sums.w[middle] * level[0] * level[0] +
                       (sums.w[last] - sums.w[middle]) * level[1] * level[1] + last_w[s][last];
      best = larger(best, xl * xl / l2);
    }
    return best;
  });
  Split split = {0.0f, sure, -1, -1, 0};
  for (int middle = 0; middle <= kCount; ++middle) {
    Float first_x[2], first_w[2];
    for (int s = 0; s < 2; ++s) {
      const float level = kShifted[s][0];
      first_x[s] = splat(sums.x[middle] * level);
      first_w[s] = splat(sums.w[middle] * level * level);
    }
    for (int last = middle; last <= kCount; last += kLanes) {
      const Float between_x = load(sums.x + last) - splat(sums.x[middle]);
      const Float between_w = load(sums.w + last) - splat(sums.w[middle]);
      Float sum_xl[2], sum_l2[2];
      Mask better = splat(0);
      for (int s = 0; s < 2; ++s) {
        const Float level = splat(kShifted[s][1]);
        sum_xl[s] = first_x[s] + between_x * level + load(last_x[s] + last);
        sum_l2[s] = first_w[s] + between_w * level * level + load(last_w[s] + last);
        better =
            better | ((sum_l2[s] > splat(0.0f)) & (sum_xl[s] * sum_xl[s] > splat(split.score) * sum_l2[s]));
      }
      if (!any(better)) continue;
      // Which is the best of several depends on their order: rounding makes nearly equal ones differ.
      float xl[2][kLanes], l2[2][kLanes];
      for (int s = 0; s < 2; ++s) {
        store(xl[s], sum_xl[s]);
        store(l2[s], sum_l2[s]);
      }
      for (int i = 0; i < kLanes; ++i) {
        for (int s = 0; s < 2; ++s) split.improve(xl[s][i], l2[s][i], middle, last + i, s);
      }
    }
  }
  return split;
}

/** Of IQ1_M: each half is shifted on its own, so `shifts` has a bit for each, the first half's above. */
GGUF_NOINLINE Split best_split_of_halves(const float* x, const float* w, const int* order) {
  constexpr int kCount = 16;
  Sums<kCount> sums[2];
  for (Sums<kCount>& half : sums) half.clear();
  for (int j = 0; j < kCount; ++j) {
    const int i = order[j], h = i / 8;
    sums[h].x[j + 1] = sums[h].x[j] + w[i] * x[i];
    sums[h].w[j + 1] = sums[h].w[j] + w[i];
    sums[1 - h].x[j + 1] = sums[1 - h].x[j];
    sums[1 - h].w[j + 1] = sums[1 - h].w[j];
  }

  const float most = larger(-x[order[0]], x[order[kCount - 1]]);
  const float sure = sure_score<kCount>(
      most, sums[0].w[kCount] + sums[1].w[kCount], [&](int middle, int last) GGUF_INLINE_LAMBDA {
        float xl[2][2], l2[2][2], best = 0.0f;
        for (int h = 0; h < 2; ++h) {
          for (int s = 0; s < 2; ++s) {
            const float* const level = kShifted[s];
            xl[h][s] = sums[h].x[kCount] * level[2] - (sums[h].x[middle] + sums[h].x[last]);
            l2[h][s] = sums[h].w[kCount] * level[2] * level[2] +
                       sums[h].w[middle] * (level[0] * level[0] - level[1] * level[1]) +
                       sums[h].w[last] * (level[1] * level[1] - level[2] * level[2]);
          }
        }
        for (int s = 0; s < 4; ++s) {
          const float a = xl[0][s / 2] + xl[1][s % 2];
          best = larger(best, a * a / (l2[0][s / 2] + l2[1][s % 2]));
        }
        return best;
      });
  Split split = {0.0f, sure, -1, -1, 0};
  for (int middle = 0; middle <= kCount; ++middle) {
    for (int last = middle; last <= kCount; last += kLanes) {
      Float xl[2][2], l2[2][2];  // of each half, with each shift
      for (int h = 0; h < 2; ++h) {
        const Float sum = splat(sums[h].x[middle]) + load(sums[h].x + last);
        for (int s = 0; s < 2; ++s) {
          const float* const level = kShifted[s];
          const float first = level[0] * level[0] - level[1] * level[1];
          const float second = level[1] * level[1] - level[2] * level[2];
          xl[h][s] = splat(sums[h].x[kCount] * level[2]) - sum;
          l2[h][s] = splat(sums[h].w[kCount] * level[2] * level[2]) + splat(sums[h].w[middle] * first) +
                     load(sums[h].w + last) * splat(second);
        }
      }
      Float sum_xl[4], sum_l2[4];
      Mask better = splat(0);
      for (int s = 0; s < 4; ++s) {
        sum_xl[s] = xl[0][s / 2] + xl[1][s % 2];
        sum_l2[s] = l2[0][s / 2] + l2[1][s % 2];
        better =
            better | ((sum_l2[s] > splat(0.0f)) & (sum_xl[s] * sum_xl[s] > splat(split.score) * sum_l2[s]));
      }
      if (!any(better)) continue;
      float each_xl[4][kLanes], each_l2[4][kLanes];
      for (int s = 0; s < 4; ++s) {
        store(each_xl[s], sum_xl[s]);
        store(each_l2[s], sum_l2[s]);
      }
      for (int i = 0; i < kLanes && last + i <= kCount; ++i) {
        for (int s = 0; s < 4; ++s) split.improve(each_xl[s][i], each_l2[s][i], middle, last + i, s);
      }
    }
  }
  return split;
}

/** What a group of kCount numbers becomes. */
template <int kCount>
struct Fit1 {
  static constexpr int kRows = kCount / 8;
  float scale;
  uint32_t row[kRows];
  const float* levels[kRows];

  /** Of each row's numbers: adds to the sums that the scale is made of. */
  GGUF_INLINE void add(const Codebook<uint64_t, 2048>& book, const float* x, const float* w, float factor,
                       float* sum_xl, float* sum_l2) const {
    for (int i = 0; i < kCount; ++i) {
      const float level = levels[i / 8][code_of<Eights>(book.packed[row[i / 8]], i % 8)] * factor;
      *sum_xl += w[i] * level * x[i];
      *sum_l2 += w[i] * level * level;
    }
  }

  /** From the best levels to rows. The scale follows where one is not what it should be. */
  GGUF_INLINE void find_rows(const Neighbours& neighbours, const float* x, const float* w,
                             const uint8_t* codes) {
    bool exact = true;
    for (int k = 0; k < kRows; ++k) {
      uint32_t point = 0;
      for (int i = 0; i < 8; ++i) point |= static_cast<uint32_t>(codes[8 * k + i]) << 2 * i;
      int32_t place = place_of<Eights>(neighbours, point);
      if (place < 0) {
        exact = false;
        float errors[8][4];
        for (int i = 0; i < 8; ++i) {
          for (int c = 0; c < 3; ++c) {
            const float difference = scale * levels[k][c] - x[8 * k + i];
            errors[i][c] = w[8 * k + i] * difference * difference;
          }
        }
        place = place_of<Eights>(neighbours, nearest<Eights>(neighbours.list(place), errors));
      }
      row[k] = static_cast<uint32_t>(place);
    }
    if (exact) return;
    float sum_xl = 0.0f, sum_l2 = 0.0f;
    add(kIq1sBook, x, w, 1.0f, &sum_xl, &sum_l2);
    if (sum_xl > 0.0f && sum_l2 > 0.0f) scale = sum_xl / sum_l2;
  }
};

/** The shift of row k of a group: 0 up, 1 down. */
template <class Format>
GGUF_INLINE int shift_of(int shifts, int k) {
  return Format::kCount == 32 ? shifts : shifts >> (1 - k) & 1;
}

/**
 * Encodes blocks of groups of numbers with Format:
 *
 *   kCount, kLeast       how many numbers a group has; groups of smaller numbers are 0
 *   split(x, w, order)   how the numbers of a group are split
 *   kTurned              the exclusive or of `shifts` and what they are with the other sign
 *   put(y, g, fit, shifts)          puts the rows of group g
 *   put_scales(...)                 puts the scales of a block
 */
template <class Format, class Block>
GGUF_INLINE void encode_levels(const float* x, const float* importance, uint64_t n_blocks, Block* dst) {
  constexpr int kCount = Format::kCount, kGroups = kBlock / kCount;
  const Neighbours& neighbours = neighbours_iq1();
  for_groups<kLanes>(x, importance, n_blocks, dst, [&](const Group& group, Block* y) {
    Magnitudes all;
    all.template prepare<Format>(group);
    for (int b = 0; b < group.n_blocks; ++b) {
      std::memset(y + b, 0, sizeof *y);
      Fit1<kCount> fits[kGroups] = {};
      float most_scale = 0.0f;
      const float* const block_x = group.x + b * kBlock;
      const float* const block_w = all.w + b * kBlock;
      for (int g = 0; g < kGroups; ++g) {
        const float* const gx = block_x + g * kCount;
        const float* const gw = block_w + g * kCount;
        Fit1<kCount>& fit = fits[g];
        for (const float*& levels : fit.levels) levels = kShifted[0];
        float most = 0.0f;
        for (int i = 0; i < kCount; ++i) most = larger(most, std::fabs(gx[i]));
        if (most < Format::kLeast) continue;

        int order[kCount] = {};
        sort<kCount>(gx, order);
        Split split = Format::split(gx, gw, order);
        if (split.from_middle < 0) continue;
        // Where sums are beyond a float, ggml ends the process.
        if (std::isnan(split.scale)) split.scale = 0.0f;
        const bool turned = split.scale < 0.0f;
        fit.scale = turned ? -split.scale : split.scale;
        const int shifts = turned ? split.shifts ^ Format::kTurned : split.shifts;
        uint8_t codes[kCount] = {};
        for (int j = 0; j < kCount; ++j) {
          const int code = (j >= split.from_middle) + (j >= split.from_last);
          codes[order[j]] = static_cast<uint8_t>(turned ? 2 - code : code);
        }
        for (int k = 0; k < fit.kRows; ++k) fit.levels[k] = kShifted[shift_of<Format>(shifts, k)];
        fit.find_rows(neighbours, gx, gw, codes);
        Format::put(y + b, g, fit.row, shifts);
        most_scale = most_scale > fit.scale ? most_scale : fit.scale;
      }
      if (most_scale == 0.0f) {
        Format::forget_shifts(y + b);
        continue;
      }
      const float d = most_scale / 15.0f, inverse = 1.0f / d;
      uint32_t codes[kGroups];
      for (int g = 0; g < kGroups; ++g) {
        const int32_t code = nearest_int(0.5f * (inverse * fits[g].scale - 1.0f));
        codes[g] = static_cast<uint32_t>(code < 0 ? 0 : code < 7 ? code : 7);
      }
      Format::put_scales(y + b, d, codes, fits, block_x, block_w);
    }
  });
}

struct Iq1s {
  static constexpr int kCount = 32, kTurned = 1;
  static constexpr float kSigma = 2.0f, kLeast = 1e-12f;
  // ggml has it only with importance.
  static constexpr Unweighted kUnweighted = Unweighted::kSquares;

  GGUF_INLINE static Split split(const float* x, const float* w, const int* order) {
    return best_split(x, w, order);
  }
  GGUF_INLINE static void put(BlockIQ1_S* y, int g, const uint32_t* row, int shifts) {
    uint32_t word = static_cast<uint32_t>(shifts) << 15;
    for (int k = 0; k < 4; ++k) {
      y->rows[4 * g + k] = static_cast<uint8_t>(row[k]);
      word |= row[k] >> 8 << 3 * k;
    }
    const auto half = static_cast<uint16_t>(word);
    std::memcpy(y->qh + 2 * g, &half, sizeof half);
  }
  /** ggml stores shifts with scales, or neither. */
  GGUF_INLINE static void forget_shifts(BlockIQ1_S* y) {
    for (int g = 0; g < 8; ++g) y->qh[2 * g + 1] &= 0x7f;
  }
  GGUF_INLINE static void put_scales(BlockIQ1_S* y, float d, const uint32_t* codes, const Fit1<32>*,
                                     const float*, const float*) {
    put_half(y->d, float_to_half(d * 1.125f));
    for (int g = 0; g < 8; ++g) y->qh[2 * g + 1] = static_cast<uint8_t>(y->qh[2 * g + 1] | codes[g] << 4);
  }
};

struct Iq1m {
  static constexpr int kCount = 16, kTurned = 3;
  static constexpr float kSigma = 2.0f, kLeast = 1e-7f;
  static constexpr Unweighted kUnweighted = Unweighted::kSquares;

  GGUF_INLINE static Split split(const float* x, const float* w, const int* order) {
    return best_split_of_halves(x, w, order);
  }
  GGUF_INLINE static void put(BlockIQ1_M* y, int g, const uint32_t* row, int shifts) {
    y->rows[2 * g] = static_cast<uint8_t>(row[0]);
    y->rows[2 * g + 1] = static_cast<uint8_t>(row[1]);
    const auto up = static_cast<uint32_t>(shifts);
    y->qh[g] = static_cast<uint8_t>(row[0] >> 8 | row[1] >> 8 << 4 | (up & 2) << 2 | (up & 1) << 7);
  }
  GGUF_INLINE static void forget_shifts(BlockIQ1_M* y) {
    for (uint8_t& qh : y->qh) qh &= 0x77;
  }
  /** The block's scale is fitted once more, with scales as they are stored. */
  GGUF_INLINE static void put_scales(BlockIQ1_M* y, float d, const uint32_t* codes, const Fit1<16>* fits,
                                     const float* x, const float* w) {
    float sum_xl = 0.0f, sum_l2 = 0.0f;
    uint16_t words[4] = {};
    for (int g = 0; g < 16; ++g) {
      words[g / 4] = static_cast<uint16_t>(words[g / 4] | codes[g] << 3 * (g % 4));
      const auto factor = static_cast<float>(2 * codes[g] + 1);
      fits[g].add(kIq1sBook, x + 16 * g, w + 16 * g, factor, &sum_xl, &sum_l2);
    }
    if (sum_l2 > 0.0f) d = sum_xl / sum_l2;
    const uint16_t half = float_to_half(std::isnan(d) ? 0.0f : d * 1.1125f);
    for (int i = 0; i < 4; ++i) words[i] = static_cast<uint16_t>(words[i] | (half >> 4 * i & 15) << 12);
    std::memcpy(y->scales, words, sizeof words);
  }
};

}  // namespace lanes

void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ1_S* y) {
  lanes::encode_levels<lanes::Iq1s>(x, importance, n_blocks, y);
}
void encode(const float* x, const float* importance, uint64_t n_blocks, BlockIQ1_M* y) {
  lanes::encode_levels<lanes::Iq1m>(x, importance, n_blocks, y);
}

}  // namespace
}  // namespace gguf
