// The neighbours of points in codebooks: against a list of all rows, sorted.
#include "quant/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "dequant/codebooks.h"

namespace gguf {
namespace {

/** A book as the tests see it. */
struct Book {
  const char* name;
  const Neighbours& (*neighbours)();
  const uint16_t* rows;
  int n_rows;
  int codes, bits, levels;
  int distances;  // how many of the least distances are looked at
};

const Book kBooks[] = {
    {"IQ2_XXS", neighbours_iq2_xxs, kIq2xxsBook.packed, 256, 8, 2, 3, 2},
    {"IQ2_XS", neighbours_iq2_xs, kIq2xsBook.packed, 512, 8, 2, 3, 2},
    {"IQ2_S", neighbours_iq2_s, kIq2sBook.packed, 1024, 8, 2, 3, 1},
    {"IQ1", neighbours_iq1, kIq1sBook.packed, 2048, 8, 2, 3, 3},
    {"IQ3_XXS", neighbours_iq3_xxs, kIq3xxsBook.packed, 256, 4, 3, 8, 2},
    {"IQ3_S", neighbours_iq3_s, kIq3sBook.packed, 512, 4, 3, 8, 3},
};

size_t place_of(const Book& book, uint32_t point) {
  return book.codes == 8 ? place_of_eight(point) : point;
}

int n_points(const Book& book) {
  return book.codes == 8 ? 6561 : 4096;
}

/** Point i of all, the first code changing fastest. */
uint32_t point_of(const Book& book, int i) {
  uint32_t point = 0;
  for (int k = 0; k < book.codes; ++k, i /= book.levels) {
    point |= static_cast<uint32_t>(i % book.levels) << (book.bits * k);
  }
  return point;
}

int distance(const Book& book, uint32_t a, uint32_t b) {
  const uint32_t mask = (1u << book.bits) - 1;
  int sum = 0;
  for (int k = 0; k < book.codes; ++k) {
    const int difference =
        static_cast<int>(a >> (book.bits * k) & mask) - static_cast<int>(b >> (book.bits * k) & mask);
    sum += difference * difference;
  }
  return sum;
}

std::vector<uint16_t> sorted_neighbours(const Book& book, uint32_t point) {
  std::vector<std::pair<int, int>> all;
  for (int row = 0; row < book.n_rows; ++row) all.emplace_back(distance(book, point, book.rows[row]), row);
  std::sort(all.begin(), all.end());
  std::vector<uint16_t> nearest;
  int distances = 0, last = -1;
  for (const auto& [d, row] : all) {
    if (d != last && ++distances > book.distances) break;
    last = d;
    nearest.push_back(book.rows[row]);
  }
  return nearest;
}

TEST(Neighbours, AreTheNearestRowsInOrder) {
  for (const Book& book : kBooks) {
    const Neighbours& neighbours = book.neighbours();
    for (int i = 0; i < n_points(book); i += 7) {
      const uint32_t point = point_of(book, i);
      ASSERT_EQ(place_of(book, point), static_cast<size_t>(i)) << book.name;
      const int32_t place = neighbours.place[i];
      if (place >= 0) {
        ASSERT_LT(place, book.n_rows);
        ASSERT_EQ(book.rows[place], point) << book.name;
        continue;
      }
      const Neighbours::List list = neighbours.list(place);
      ASSERT_EQ(std::vector<uint16_t>(list.begin, list.end), sorted_neighbours(book, point))
          << book.name << ", point " << point;
    }
  }
}

TEST(Neighbours, EveryRowIsFound) {
  for (const Book& book : kBooks) {
    const Neighbours& neighbours = book.neighbours();
    for (int row = 0; row < book.n_rows; ++row) {
      ASSERT_EQ(neighbours.place[place_of(book, book.rows[row])], row) << book.name;
    }
    const auto rows = std::count_if(neighbours.place, neighbours.place + n_points(book),
                                    [](int32_t place) { return place >= 0; });
    EXPECT_EQ(rows, book.n_rows) << book.name;
  }
}

TEST(Neighbours, FillTheirMemory) {
  // The lists follow each other, so that of the last point ends where all do.
  const size_t lengths[] = {119462, 187770, 50253, 332234, 22825, 28317};
  for (size_t i = 0; i < std::size(kBooks); ++i) {
    const Neighbours& neighbours = kBooks[i].neighbours();
    size_t length = 0;
    for (int place = 0; place < n_points(kBooks[i]); ++place) {
      if (neighbours.place[place] >= 0) continue;
      const Neighbours::List list = neighbours.list(neighbours.place[place]);
      EXPECT_EQ(static_cast<size_t>(~neighbours.place[place]), length);
      length += 1 + static_cast<size_t>(list.end - list.begin);
    }
    EXPECT_EQ(length, lengths[i]) << kBooks[i].name;
  }
}

}  // namespace
}  // namespace gguf
