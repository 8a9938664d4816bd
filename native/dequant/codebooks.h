// The codebooks of the IQ formats: rows of eight or four codes, a byte each, the first lowest; the same rows
// with the levels in the place of the codes, for instruction sets that look nothing up; and packed, for those
// that would rather take a few instructions more than a large table. What a code stands for is in levels.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gguf {

template <class Row, size_t kRows>
struct Codebook {
  alignas(64) Row row[kRows];
  alignas(64) Row levels[kRows];  // signed bytes; the top bit of no code is set
  // As many bits to a code as it has without the top one. There are two rows too many: four bytes may be read
  // at the last one.
  alignas(64) uint16_t packed[kRows + 2];
};

// constexpr where they are defined, so there is nothing to initialise at run time.
extern const Codebook<uint64_t, 256> kIq2xxsBook;  // codes of levels Iq2
extern const Codebook<uint64_t, 512> kIq2xsBook;
extern const Codebook<uint64_t, 1024> kIq2sBook;
extern const Codebook<uint64_t, 2048> kIq1sBook;   // codes of levels Iq1
extern const Codebook<uint32_t, 256> kIq3xxsBook;  // codes of levels Iq3xxs
extern const Codebook<uint32_t, 512> kIq3sBook;    // codes of levels Iq3s

}  // namespace gguf
