// How encoders of the codebook formats search: for groups of numbers, of which eight or four together are
// a row of a book. A group has a scale; numbers are scale * (2 * code + 1), with signs apart.
//
// Some tens of scales are tried for each group, a lane for each. Every number is rounded with all of them,
// and where what comes out is no row of the book, its neighbours (neighbours.h) are looked through for the
// one with the least weighted error. Most scales round numbers to the same point as the scale before, so the
// neighbours of a point are looked through once for a whole run of scales. What an error is made of is
// computed once for every code that a number can have: then an error is a few additions.
#pragma once

#include "quant/encoders/k_groups.h"
#include "quant/neighbours.h"

namespace gguf {
namespace {
namespace lanes {

/** Rows of eight codes of two bits, of which 3 does not occur. */
struct Eights {
  static constexpr int kCodes = 8, kBits = 2, kLevels = 3;
  static size_t place(uint32_t point) { return place_of_eight(point); }
};
/** Rows of four codes of three bits. */
struct Fours {
  static constexpr int kCodes = 4, kBits = 3, kLevels = 8;
  static size_t place(uint32_t point) { return point; }
};

template <class Rows>
GGUF_INLINE int32_t place_of(const Neighbours& book, uint32_t point) {
  return book.place[Rows::place(point)];
}

/** Code i of a packed point. */
template <class Rows>
GGUF_INLINE uint32_t code_of(uint32_t point, int i) {
  return point >> Rows::kBits * i & ((1u << Rows::kBits) - 1);
}

/** What a code stands for, to be scaled. */
GGUF_INLINE float level_of(uint32_t code) {
  return static_cast<float>(2 * code + 1);
}

constexpr int kMostScales = 32;
constexpr int kScaleVectors = kMostScales / kLanes;

/** The scales that are tried for a group. */
struct Tried {
  int count;
  Float inverse[kScaleVectors], scale[kScaleVectors];

  /** Of those that map `most` to the numbers in `to`. */
  Tried(const float* to, int n, float most) : count(n) {
    for (int v = 0; v < vectors(); ++v) {
      inverse[v] = load(to + v * kLanes) / splat(most);
      scale[v] = splat(1.0f) / inverse[v];
    }
  }
  int vectors() const { return (count + kLanes - 1) / kLanes; }
};

/** What a row's worth of numbers becomes with each scale that is tried. */
struct Chosen {
  Int point[kScaleVectors];
  /** By scale, a bit: whether the numbers were rounded to a row of the book. */
  uint32_t exact;

  GGUF_INLINE uint32_t of(int scale) const {
    int32_t points[kLanes];
    store(points, point[scale / kLanes]);
    return static_cast<uint32_t>(points[scale % kLanes]);
  }
};

/** What code c of number i adds to an error, for kLanes scales. */
template <class Rows>
struct Errors {
  Float of[Rows::kCodes][1 << Rows::kBits];

  GGUF_INLINE void compute(const float* x, const float* root_w, Float scale) {
    for (int i = 0; i < Rows::kCodes; ++i) {
      for (int c = 0; c < Rows::kLevels; ++c) {
        const Float difference = scale * splat(level_of(static_cast<uint32_t>(c))) - splat(x[i]);
        of[i][c] = splat(root_w[i]) * difference * difference;
      }
    }
  }

  /** The first neighbour with the least error. */
  GGUF_INLINE Int nearest(Neighbours::List list) const {
    Float least = splat(FLT_MAX);
    Int point = splat(static_cast<int32_t>(*list.begin));
    for (const uint16_t* p = list.begin; p != list.end; ++p) {
      Float error = of[0][code_of<Rows>(*p, 0)];
      GGUF_UNROLL
      for (int i = 1; i < Rows::kCodes; ++i) error += of[i][code_of<Rows>(*p, i)];
      const Mask less = error < least;
      least = select(less, error, least);
      point = select(less, splat(static_cast<int32_t>(*p)), point);
    }
    return point;
  }
};

GGUF_INLINE Int lane_numbers() {
  int32_t number[kLanes];
  for (int i = 0; i < kLanes; ++i) number[i] = i;
  return load(number);
}

template <class Rows>
GGUF_NOINLINE void choose(const Neighbours& book, const float* x, const float* root_w, const Tried& tried,
                          Chosen* chosen) {
  int32_t points[kMostScales];
  for (int v = 0; v < tried.vectors(); ++v) {
    Int point = splat(0);
    GGUF_UNROLL
    for (int i = Rows::kCodes - 1; i >= 0; --i) {
      const Float middle = splat(0.5f) * (tried.inverse[v] * splat(x[i]) - splat(1.0f));
      const Int code = clamp(nearest_int(middle), 0, Rows::kLevels - 1);
      point = point << Rows::kBits | code;
    }
    chosen->point[v] = point;
    store(points + v * kLanes, point);
  }

  Errors<Rows> errors[kScaleVectors];
  uint32_t computed = 0;
  chosen->exact = 0;
  for (int from = 0, to = 0; from < tried.count; from = to) {
    while (++to < tried.count && points[to] == points[from]) {
    }
    const int32_t place = place_of<Rows>(book, static_cast<uint32_t>(points[from]));
    if (place >= 0) {
      chosen->exact |= (uint32_t{2} << (to - 1)) - (uint32_t{1} << from);
      continue;
    }
    for (int v = from / kLanes; v * kLanes < to; ++v) {
      if ((computed >> v & 1) == 0) errors[v].compute(x, root_w, tried.scale[v]);
      computed |= 1u << v;
      const Int number = lane_numbers() + splat(v * kLanes);
      const Mask in_run = (number > splat(from - 1)) & (number < splat(to));
      chosen->point[v] = select(in_run, errors[v].nearest(book.list(place)), chosen->point[v]);
    }
  }
}

/** The first of a point's neighbours with the least error, where errors[i][c] is what code c of number i
 * adds. */
template <class Rows>
GGUF_INLINE uint32_t nearest(Neighbours::List list, const float (&errors)[Rows::kCodes][1 << Rows::kBits]) {
  float least = FLT_MAX;
  uint32_t point = *list.begin;
  for (const uint16_t* p = list.begin; p != list.end; ++p) {
    float error = errors[0][code_of<Rows>(*p, 0)];
    GGUF_UNROLL
    for (int i = 1; i < Rows::kCodes; ++i) error += errors[i][code_of<Rows>(*p, i)];
    if (error < least) {
      least = error;
      point = *p;
    }
  }
  return point;
}

/** As `choose`, for one scale. */
template <class Rows>
GGUF_NOINLINE uint32_t choose_one(const Neighbours& book, const float* x, const float* root_w, float scale) {
  const float inverse = 1.0f / scale;
  uint32_t point = 0;
  for (int i = Rows::kCodes - 1; i >= 0; --i) {
    int32_t code = nearest_int(0.5f * (inverse * x[i] - 1.0f));
    code = code < 0 ? 0 : code < Rows::kLevels ? code : Rows::kLevels - 1;
    point = point << Rows::kBits | static_cast<uint32_t>(code);
  }
  const int32_t place = place_of<Rows>(book, point);
  if (place >= 0) return point;

  float errors[Rows::kCodes][1 << Rows::kBits];
  for (int i = 0; i < Rows::kCodes; ++i) {
    for (int c = 0; c < Rows::kLevels; ++c) {
      const float difference = scale * level_of(static_cast<uint32_t>(c)) - x[i];
      errors[i][c] = root_w[i] * difference * difference;
    }
  }
  return nearest<Rows>(book.list(place), errors);
}

/** What a group of kCount numbers becomes. */
template <class Rows, int kCount>
struct Fit {
  static constexpr int kRows = kCount / Rows::kCodes;
  static constexpr uint32_t kAllExact = (1u << kRows) - 1;
  float scale;
  uint32_t point[kRows];
  /** By row, a bit: whether its numbers were rounded to it, rather than to a neighbour. */
  uint32_t exact;

  /** The scale with which the rows fit best, if there is one. */
  void fit_scale(const float* x, const float* w) {
    float sum_xl = 0.0f, sum_l2 = 0.0f;
    for (int i = 0; i < kCount; ++i) {
      const float level = level_of(code_of<Rows>(point[i / Rows::kCodes], i % Rows::kCodes));
      sum_xl += w[i] * x[i] * level;
      sum_l2 += w[i] * level * level;
    }
    if (sum_l2 > 0.0f) scale = sum_xl / sum_l2;
  }

  /** The best of the scales that are tried, if one is better than none. */
  GGUF_NOINLINE void search(const Neighbours& book, const float* x, const float* w, const float* root_w,
                            const Tried& tried) {
    Chosen chosen[kRows];
    float sums_xl[kMostScales], sums_l2[kMostScales];
    for (int k = 0; k < kRows; ++k) {
      choose<Rows>(book, x + k * Rows::kCodes, root_w + k * Rows::kCodes, tried, chosen + k);
    }
    for (int v = 0; v < tried.vectors(); ++v) {
      Float sum_xl = splat(0.0f), sum_l2 = splat(0.0f);
      for (int k = 0; k < kRows; ++k) {
        Int rest = chosen[k].point[v];
        for (int i = k * Rows::kCodes; i < (k + 1) * Rows::kCodes; ++i) {
          const Int code = rest & splat((1 << Rows::kBits) - 1);
          const Float level = to_float(code + code + splat(1));
          rest = rest >> Rows::kBits;
          sum_xl += splat(w[i] * x[i]) * level;
          sum_l2 += splat(w[i]) * level * level;
        }
      }
      store(sums_xl + v * kLanes, sum_xl);
      store(sums_l2 + v * kLanes, sum_l2);
    }
    float best = 0.0f;
    int best_of = -1;
    for (int c = 0; c < tried.count; ++c) {
      const float xl = sums_xl[c], l2 = sums_l2[c];
      if (!(l2 > 0.0f && xl * xl > best * l2)) continue;
      scale = xl / l2;
      best = scale * xl;
      best_of = c;
    }
    if (best_of < 0) return;
    exact = 0;
    for (int k = 0; k < kRows; ++k) {
      point[k] = chosen[k].of(best_of);
      exact |= (chosen[k].exact >> best_of & 1) << k;
    }
  }

  /** Rounds once more, with the scale that was found, but rows in `kept`. */
  GGUF_NOINLINE void round_again(const Neighbours& book, const float* x, const float* w, const float* root_w,
                                 uint32_t kept) {
    for (int k = 0; k < kRows; ++k) {
      if ((kept >> k & 1) != 0) continue;
      point[k] = choose_one<Rows>(book, x + k * Rows::kCodes, root_w + k * Rows::kCodes, scale);
    }
    fit_scale(x, w);
  }

  /** The number of row k in the book. */
  GGUF_INLINE uint32_t row(const Neighbours& book, int k) const {
    const int32_t place = place_of<Rows>(book, point[k]);
    return place >= 0 ? static_cast<uint32_t>(place) : 0;
  }
};

/** How errors count without importance: like squares of numbers, or like these and a quarter of the block's
 * mean. */
enum class Unweighted { kSquares, kSquaresAndQuarter };

/** How the signs of eight numbers are stored: all, or seven, and the eighth makes the number of minus signs
 * even. */
enum class Signs { kEight, kEven };

/** The rows that are rounded once more, with the scale that was found. */
enum class Again { kNeighbours, kAllIfNeighbours, kAll };

/** The numbers of a group of blocks as they are searched: magnitudes, and how errors count. */
struct Magnitudes {
  float x[kLanes * kBlock], w[kLanes * kBlock];

  template <class Format>
  GGUF_INLINE void prepare(const Group& group) {
    float sums[kLanes];
    store(sums, splat(Format::kSigma) * sums_of_squares(group.x) / splat(256.0f));
    for (int b = 0; b < group.n_blocks; ++b) {
      const Float sigma2 = splat(sums[b]);
      for (int i = b * kBlock; i < (b + 1) * kBlock; i += kLanes) {
        const Float v = load(group.x + i), squares = v * v;
        store(x + i, select(v < splat(0.0f), negated(v), v));
        if (group.importance != nullptr) {
          store(w + i, load(group.importance + i) * sqrt(sigma2 + squares));
        } else if (Format::kUnweighted == Unweighted::kSquares) {
          store(w + i, squares);
        } else {
          store(w + i, splat(0.25f) * sigma2 + squares);
        }
      }
    }
  }
};

/** The signs of eight numbers, a bit each. */
GGUF_INLINE uint8_t signs_of(const float* x) {
  uint32_t signs = 0;
  for (int i = 0; i < 8; ++i) signs |= static_cast<uint32_t>(x[i] < 0.0f) << i;
  return static_cast<uint8_t>(signs);
}

/** Makes the number of minus signs even: the number whose sign matters least gets the other one. Its
 * magnitude becomes negative. */
GGUF_INLINE uint8_t even_signs(uint8_t signs, float* x, const float* w) {
  const uint32_t half = signs ^ signs >> 4;
  if ((0x6996 >> (half & 15) & 1) != 0) {
    int least = 0;
    float error = w[0] * x[0] * x[0];
    for (int i = 1; i < 8; ++i) {
      const float other = w[i] * x[i] * x[i];
      if (other < error) {
        error = other;
        least = i;
      }
    }
    x[least] = -x[least];
    signs = static_cast<uint8_t>(signs ^ 1 << least);
  }
  return signs & 127;
}

/** What the greatest magnitude becomes with each scale that is tried: level kMost, and some more or less. */
template <class Format>
struct Tops {
  alignas(64) float of[kMostScales];

  constexpr Tops() : of{} {
    for (int i = 0; i < kMostScales; ++i) {
      const int step = i < Format::kTried ? i - Format::kTried / 2 : 0;
      of[i] = static_cast<float>(2 * Format::Rows::kLevels - 1) + static_cast<float>(step) * Format::kStep;
    }
  }
};

/**
 * Encodes blocks of groups of magnitudes, which differ in what Format says:
 *
 * - Rows, kCount: the book's rows, and how many numbers a group has
 * - kSigma, kUnweighted: how errors count: with importance, importance * sqrt(kSigma * mean of squares + x^2)
 * - kSigns: how signs are stored
 * - kLeast: groups of smaller numbers are 0
 * - kTried, kStep: how many scales are tried, and how far apart what they make of the greatest number is
 * - kAgain: which rows are rounded again
 * - kFactor: what ggml multiplies the block's scale with
 * - kKeepsZeros: whether a block whose scale is 0 keeps rows and signs
 * - book(): the book's neighbours
 * - put(y, g, at, fit, signs): puts rows and signs of group g, the at-th that is not 0
 * - put_scale(y, g, code): adds the scale of group g
 */
template <class Format, class Block>
GGUF_INLINE void encode_magnitudes(const float* x, const float* importance, uint64_t n_blocks, Block* dst) {
  using Rows = typename Format::Rows;
  constexpr int kCount = Format::kCount, kGroups = kBlock / kCount;
  static constexpr Tops<Format> kTops{};
  const Neighbours& book = Format::book();

  for_groups<kLanes>(x, importance, n_blocks, dst, [&](const Group& group, Block* y) {
    Magnitudes all;
    all.template prepare<Format>(group);
    uint8_t signs[kLanes * kBlock / 8];
    for (int i = 0; i < group.n_blocks * kBlock / 8; ++i) {
      signs[i] = signs_of(group.x + 8 * i);
      if (Format::kSigns == Signs::kEven) signs[i] = even_signs(signs[i], all.x + 8 * i, all.w + 8 * i);
    }
    typename Format::First first;
    first.search(&all, group.n_blocks);

    for (int b = 0; b < group.n_blocks; ++b) {
      std::memset(y + b, 0, sizeof *y);
      float scales[kGroups] = {}, most_scale = 0.0f;
      for (int g = 0, at = 0; g < kGroups; ++g) {
        const int from = b * kBlock + g * kCount;
        const float* const gx = all.x + from;
        const float* const gw = all.w + from;
        float root_w[kCount], most = gx[0];
        for (int i = 0; i < kCount; ++i) most = most > gx[i] ? most : gx[i];
        if (most < Format::kLeast || most == 0.0f) continue;
        for (int i = 0; i < kCount; i += kLanes) store(root_w + i, sqrt(load(gw + i)));

        Fit<Rows, kCount> fit = {};
        fit.scale = most / static_cast<float>(2 * Rows::kLevels - 1);
        fit.exact = Format::kAgain == Again::kAllIfNeighbours ? 0 : Fit<Rows, kCount>::kAllExact;
        if (!first.start(b * kGroups + g, &fit.scale, &most)) continue;
        fit.search(book, gx, gw, root_w, Tried(kTops.of, Format::kTried, most));
        const bool neighbours = fit.exact != Fit<Rows, kCount>::kAllExact;
        if ((Format::kAgain == Again::kAll || neighbours) && fit.scale > 0.0f) {
          fit.round_again(book, gx, gw, root_w, Format::kAgain == Again::kNeighbours ? fit.exact : 0);
        }
        // Where sums are beyond a float, ggml ends the process.
        if (std::isnan(fit.scale)) fit.scale = 0.0f;
        uint8_t* const group_signs = signs + from / 8;
        if (fit.scale < 0.0f) {
          fit.scale = -fit.scale;
          for (int i = 0; i < kCount / 8; ++i) {
            group_signs[i] =
                static_cast<uint8_t>(~group_signs[i]) & (Format::kSigns == Signs::kEven ? 127 : 255);
          }
        }
        uint32_t rows[Fit<Rows, kCount>::kRows];
        for (int k = 0; k < Fit<Rows, kCount>::kRows; ++k) rows[k] = fit.row(book, k);
        Format::put(y + b, g, at, rows, group_signs);
        ++at;
        scales[g] = fit.scale;
        most_scale = most_scale > fit.scale ? most_scale : fit.scale;
      }
      if (most_scale == 0.0f) {
        if (!Format::kKeepsZeros) std::memset(y + b, 0, sizeof *y);
        continue;
      }
      const float d = most_scale / 31.0f, inverse = 1.0f / d;
      put_half(y[b].d, float_to_half(d * Format::kFactor));
      for (int g = 0; g < kGroups; ++g) {
        const int32_t code = nearest_int(0.5f * (inverse * scales[g] - 1.0f));
        Format::put_scale(y + b, g, static_cast<uint32_t>(code < 0 ? 0 : code < 15 ? code : 15));
      }
    }
  });
}

/** Of a format whose first scale follows from the greatest magnitude of a group. */
struct NoFirst {
  GGUF_INLINE void search(Magnitudes*, int) {}
  GGUF_INLINE bool start(int, float*, float*) const { return true; }
};

}  // namespace lanes
}  // namespace
}  // namespace gguf
