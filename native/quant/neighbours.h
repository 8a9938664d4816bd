// For encoders of the codebook formats: which rows of a book are near a point. Numbers are rounded to a point
// first, eight codes of 0 to 2 or four of 0 to 7. Where the book has no such row, one of the nearest is
// taken: of those at the least distance, and for most books at the next one or two distances that occur. ggml
// looks through them by distance, then by number, and keeps the first of equally good ones; so the order
// counts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf {

/** What encoders know of a book. A point is packed like a row: two or three bits for each code, the
 * first lowest. */
struct Neighbours {
  /** Of each point (place_of_eight; a point of four codes is its own place): the number of the row that is
   * this point, or, if there is none, ~i where lists[i] is how many neighbours it has, and these follow. */
  const int32_t* place;
  const uint16_t* lists;

  /** Neighbours, packed, in the order in which they are searched. */
  struct List {
    const uint16_t* begin;
    const uint16_t* end;
  };
  List list(int32_t place_of_point) const {
    const uint16_t* const p = lists + ~place_of_point;
    return {p + 1, p + 1 + *p};
  }
};

/** Numbers of base 3: of four codes of two bits. */
struct Base3 {
  uint8_t of[256];
};
constexpr Base3 base_3() {
  Base3 base{};
  for (uint32_t codes = 0; codes < 256; ++codes) {
    uint32_t number = 0;
    for (int i = 3; i >= 0; --i) number = number * 3 + (codes >> 2 * i & 3);
    base.of[codes] = static_cast<uint8_t>(number);
  }
  return base;
}
inline constexpr Base3 kBase3 = base_3();

/** Where points of eight codes from 0 to 2 stand in `place`: so there is no room for the code 3. */
inline size_t place_of_eight(uint32_t point) {
  return kBase3.of[point & 255] + size_t{81} * kBase3.of[point >> 8 & 255];
}

// Found when they are asked for first, in some milliseconds, for which other threads wait. Their memory is
// part of the program, so nothing can fail.
const Neighbours& neighbours_iq2_xxs();
const Neighbours& neighbours_iq2_xs();
const Neighbours& neighbours_iq2_s();
const Neighbours& neighbours_iq1();
const Neighbours& neighbours_iq3_xxs();
const Neighbours& neighbours_iq3_s();

}  // namespace gguf
