// Runs one kernel of NEON once, for scripts/measure/neon.mjs, which records what it executes:
//
//   run-kernel                           prints "NAME ELEMENTS" of every format, elements of a block
//   run-kernel store NAME BLOCKS         to binary32
//   run-kernel multiply ISA NAME BLOCKS  a row of levels with one vector of int8
//   run-kernel tile ISA RUN AFFINE RUNS  rows of levels with as many vectors of int8 as a tile has; AFFINE is
//                                        0 or 1. Prints "ROWS VECTORS"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dequant/isa/kernel_table.h"

namespace {

using namespace gguf;

std::vector<uint8_t> random_bytes(uint64_t n) {
  std::vector<uint8_t> bytes(n);
  uint32_t random = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
  return bytes;
}

const KernelTable& find_isa(const char* name) {
  for (const KernelTable* kernels : {kNeonKernels, kNeonDotprodKernels, kNeonI8mmKernels}) {
    if (std::strcmp(name, kernels->isa) == 0) return *kernels;
  }
  std::exit(1);
}

const Format& find_name(const char* name) {
  for (const Format& format : formats()) {
    if (std::strcmp(format.name, name) == 0) return format;
  }
  std::exit(1);
}

void store(const Format& format, uint64_t n_blocks) {
  std::vector<float> numbers(n_blocks * format.block_elements);
  kNeonKernels->formats[format.index].store[0](random_bytes(n_blocks * format.block_bytes).data(), n_blocks,
                                               numbers.data());
}

void multiply(const KernelTable& kernels, const Format& format, uint64_t n_blocks) {
  const uint64_t columns = n_blocks * format.block_elements;
  const std::vector<int8_t> codes(columns + 512, 1);
  const std::vector<float> numbers(columns / 16 + 32);
  const std::vector<int32_t> corrections(numbers.size());
  float y;
  kernels.formats[format.index].multiply_codes(
      random_bytes(n_blocks * format.block_bytes).data(), 1, columns,
      {codes.data(), codes.data() + columns / 2, numbers.data(), numbers.data(), corrections.data()}, &y);
}

void multiply_tile(const KernelTable& kernels, uint64_t run, bool affine, uint64_t n_runs) {
  const auto rows = static_cast<uint64_t>(kernels.lanes),
             vectors = static_cast<uint64_t>(kernels.code_vectors);
  const std::vector<uint8_t> w = random_bytes(n_runs * run * rows), x(n_runs * (run + 8) * vectors);
  const std::vector<float> scales(n_runs * rows);
  std::vector<float> sums(16 * vectors * rows), y(vectors * rows);
  CodeTile tile{};
  tile.w = w.data();
  tile.n_runs = n_runs;
  tile.scales = tile.minima = scales.data();
  tile.affine = affine;
  tile.x = x.data();
  tile.sums = sums.data();
  tile.starts = true;
  tile.y = y.data();
  tile.y_stride = rows;
  tile.n_rows = rows;
  kernels.code_tiles[run == 16 ? 0 : 1][0].of[vectors - 1](tile);
  std::printf("%d %d\n", kernels.lanes, kernels.code_vectors);
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (argc == 4) {
    store(find_name(argv[2]), number(3));
  } else if (argc == 5) {
    multiply(find_isa(argv[2]), find_name(argv[3]), number(4));
  } else if (argc == 6) {
    multiply_tile(find_isa(argv[2]), number(3), number(4) != 0, number(5));
  } else {
    for (const Format& format : formats()) std::printf("%s %u\n", format.name, format.block_elements);
  }
}
