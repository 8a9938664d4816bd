#include "quant/neighbours.h"

#include "dequant/codebooks.h"

namespace gguf {
namespace {

/** Points of kCodes codes of kBits bits are taken apart into two halves. */
template <int kCodes, int kBits>
struct Points {
  static constexpr int kHalfBits = kCodes * kBits / 2;
  static constexpr uint32_t kHalfMask = (1u << kHalfBits) - 1;
  static constexpr size_t kLevels = kBits == 2 ? 3 : 8;
  static constexpr size_t kHalves = kBits == 2 ? 81 : 64;
  static constexpr size_t kCount = kHalves * kHalves;

  /** The square of the distance between the half with a number, and that of a row. */
  static uint8_t distance(size_t number, uint32_t half) {
    size_t sum = 0;
    for (int i = 0; i < kCodes / 2; ++i, number /= kLevels, half >>= kBits) {
      const size_t a = number % kLevels, b = half & ((1u << kBits) - 1);
      sum += (a - b) * (a - b);  // unsigned: the square is right whichever is greater
    }
    return static_cast<uint8_t>(sum);
  }
};
using Eight = Points<8, 2>;
using Four = Points<4, 3>;

/**
 * The neighbours of all points of a book: rows at the kDistances least distances that occur. kEntries is how
 * long the lists are together, with their counts.
 */
template <class Points, size_t kRows, size_t kDistances, size_t kEntries>
class NeighboursOf {
  static constexpr size_t kMostDistance = 256;

  int32_t place_[Points::kCount];
  uint16_t lists_[kEntries + 1];  // one more: see `append`
  size_t n_ = 0;

  /** Adds a row to the lists if `stays`: without a branch, which would be guessed wrong. */
  void append(uint16_t row, bool stays) {
    lists_[n_] = row;
    n_ += stays;
  }

 public:
  explicit NeighboursOf(const uint16_t* packed) {
    uint8_t halves[Points::kHalves][Points::kHalfMask + 1];
    for (size_t number = 0; number < Points::kHalves; ++number) {
      for (uint32_t half = 0; half <= Points::kHalfMask; ++half) {
        halves[number][half] = Points::distance(number, half);
      }
    }
    for (size_t i = 0; i < Points::kCount; ++i) {
      const uint8_t* const low = halves[i % Points::kHalves];
      const uint8_t* const high = halves[i / Points::kHalves];
      uint8_t distance[kRows];
      bool occurs[kMostDistance] = {};
      for (size_t row = 0; row < kRows; ++row) {
        distance[row] = static_cast<uint8_t>(low[packed[row] & Points::kHalfMask] +
                                             high[packed[row] >> Points::kHalfBits]);
        occurs[distance[row]] = true;
      }
      if (occurs[0]) {
        size_t row = 0;
        while (distance[row] != 0) ++row;
        place_[i] = static_cast<int32_t>(row);
        continue;
      }
      place_[i] = ~static_cast<int32_t>(n_);
      const size_t count = n_++;
      for (size_t d = 1, left = kDistances; left > 0; ++d) {
        if (!occurs[d]) continue;
        --left;
        for (size_t row = 0; row < kRows; ++row) append(packed[row], distance[row] == d);
      }
      lists_[count] = static_cast<uint16_t>(n_ - count - 1);
    }
  }

  Neighbours view() const { return {place_, lists_}; }
};

/** The neighbours in a book, found when it is asked for first. */
template <class Points, size_t kDistances, size_t kEntries, class Book>
const Neighbours& neighbours_in(const Book& book) {
  static const NeighboursOf<Points, Book::kRows, kDistances, kEntries> kAll(book.packed);
  static const Neighbours kView = kAll.view();
  return kView;
}

}  // namespace

const Neighbours& neighbours_iq2_xxs() {
  return neighbours_in<Eight, 2, 119462>(kIq2xxsBook);
}
const Neighbours& neighbours_iq2_xs() {
  return neighbours_in<Eight, 2, 187770>(kIq2xsBook);
}
const Neighbours& neighbours_iq2_s() {
  return neighbours_in<Eight, 1, 50253>(kIq2sBook);
}
const Neighbours& neighbours_iq1() {
  return neighbours_in<Eight, 3, 332234>(kIq1sBook);
}
const Neighbours& neighbours_iq3_xxs() {
  return neighbours_in<Four, 2, 22825>(kIq3xxsBook);
}
const Neighbours& neighbours_iq3_s() {
  return neighbours_in<Four, 3, 28317>(kIq3sBook);
}

}  // namespace gguf
