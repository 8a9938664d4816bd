// Runs the NEON kernel of one format once, for scripts/measure/neon.mjs, which records what it executes:
//
//   run-kernel NAME BLOCKS     without arguments: prints "NAME ELEMENTS" of every format, elements of a block
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dequant/isa/kernel_table.h"

int main(int argc, char** argv) {
  for (const gguf::Format& format : gguf::formats()) {
    if (argc < 3) {
      std::printf("%s %u\n", format.name, format.block_elements);
    } else if (std::strcmp(format.name, argv[1]) == 0) {
      const uint64_t n_blocks = std::strtoull(argv[2], nullptr, 10);
      std::vector<uint8_t> blocks(n_blocks * format.block_bytes);
      uint32_t random = 1;
      for (uint8_t& byte : blocks)
        byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
      std::vector<float> numbers(n_blocks * format.block_elements);
      gguf::kNeonKernels->kernels[format.index][0](blocks.data(), n_blocks, numbers.data());
      return 0;
    }
  }
  return argc < 3 ? 0 : 1;
}
