// The codebooks of the IQ formats: rows of eight or four codes, a byte each, the first lowest. Each codebook
// also exists in other forms, the fastest for some instruction sets. levels.h has the values of the codes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf {

template <class Row, size_t kRowCount>
struct Codebook {
  static constexpr size_t kRows = kRowCount;
  alignas(64) Row row[kRows];
  /** Rows of eight codes of two bits, or of four of three bits. Two extra rows, because four bytes may be
   * read at the last one. */
  alignas(64) uint16_t packed[kRows + 2];
};

/** With the levels as binary16 numbers. */
template <size_t kRows>
struct HalvesCodebook : Codebook<uint64_t, kRows> {
  alignas(64) uint16_t halves[8 * kRows];
};

/** With the levels as bytes. */
template <size_t kRows>
struct BytesCodebook : Codebook<uint32_t, kRows> {
  alignas(64) uint32_t levels[kRows];
};

// Their definitions are constexpr, so nothing is initialised at run time.
extern const HalvesCodebook<256> kIq2xxsBook;  // codes of levels Iq2
extern const HalvesCodebook<512> kIq2xsBook;
extern const HalvesCodebook<1024> kIq2sBook;
extern const Codebook<uint64_t, 2048> kIq1sBook;  // codes of levels Iq1
extern const BytesCodebook<256> kIq3xxsBook;      // codes of levels Iq3xxs
extern const BytesCodebook<512> kIq3sBook;        // codes of levels Iq3s

}  // namespace gguf
