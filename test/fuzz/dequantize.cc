// Every instruction set of this machine against the scalar one, to the bit: any bytes, any number of blocks,
// every output, way of storing, byte order and alignment. Each run is one format and one output on fresh
// bytes.
//
//   | format | out, store, byte order | src shift | dst shift | blocks | seed: 3 bytes | bytes ...
//
// The bytes given come first; what is missing is made from the seed, so that short inputs are as good as long
// ones.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dequant/block_fields.h"
#include "dequant/dequant.h"
#include "test/fuzz/memory.h"
#include "test/fuzz/random.h"
#include "test/fuzz/require.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace gguf::fuzz {
namespace {

constexpr size_t kOptionBytes = 8;
/** The most elements of one run: two groups of blocks and a bit. */
constexpr size_t kMaxElements = 1200;

bool same(const uint8_t* a, const uint8_t* b, size_t n, Out out) {
  if (std::memcmp(a, b, n * out_bytes(out)) == 0) return true;
  switch (out) {
    case Out::kFloat32:
      return same_numbers<uint32_t>(a, b, n, 0x7f800000);
    case Out::kFloat16:
      return same_numbers<uint16_t>(a, b, n, 0x7c00);
    default:
      return same_numbers<uint16_t>(a, b, n, 0x7f80);
  }
}

struct Case {
  const Format& format;
  Out out;
  Store store;
  bool big_endian;
  size_t dst_shift;  // bytes
  size_t n_blocks;

  size_t n_elements() const { return n_blocks * format.block_elements; }
};

void run(const Case& c, const uint8_t* src, const uint8_t* expected) {
  const Memory dst(c.dst_shift, c.n_elements() * out_bytes(c.out));
  dequantize(c.format, c.out, c.store, c.big_endian, src, c.n_blocks, dst.data());
  FUZZ_REQUIRE(dst.untouched_before());
  FUZZ_REQUIRE(same(dst.data(), expected, c.n_elements(), c.out));
}

}  // namespace
}  // namespace gguf::fuzz

/** New options and another seed are worth more here than other bytes; half of the inputs get nothing else. */
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace gguf::fuzz;
  Random random(seed);
  if (size > kOptionBytes && random.one_in(2)) {
    size = kOptionBytes + LLVMFuzzerMutate(data + kOptionBytes, size - kOptionBytes, max_size - kOptionBytes);
  } else if (size <= kOptionBytes) {
    size = kOptionBytes + random.below(40);
    for (size_t i = kOptionBytes; i < size; i++) data[i] = static_cast<uint8_t>(random.bits());
  }
  const uint64_t bits = random.bits();
  std::memcpy(data, &bits, kOptionBytes);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gguf;
  using namespace gguf::fuzz;
  if (size < kOptionBytes) return -1;
  const Format& format = formats()[data[0] % formats().size()];
  const Out out = static_cast<Out>(data[1] % 3);
  const size_t most_blocks = kMaxElements / format.block_elements;
  const size_t n_blocks =
      format.block_elements == 1 ? data[4] * most_blocks / 255 : data[4] % (most_blocks + 1);
  // Half of the outputs start on a line, as streaming stores want it.
  const size_t dst_shift = (data[3] & 1) != 0 ? 0 : data[3] % kLine / out_bytes(out) * out_bytes(out);
  const Case c{
      format,    out,     (data[1] & 64) != 0 ? Store::kStreaming : Store::kPlain, (data[1] & 128) != 0,
      dst_shift, n_blocks};
  Random random(data[5] | data[6] << 8 | data[7] << 16);
  const size_t n_bytes = n_blocks * format.block_bytes;
  const Memory src(data[2] % kLine, n_bytes);
  fill(src.data(), n_bytes, data + kOptionBytes, size - kOptionBytes, random);

  // The definition: scalar, stored plainly, from little-endian blocks.
  const Memory little(0, n_bytes);
  const uint8_t* blocks = src.data();
  if (c.big_endian) {
    swap_blocks(fields_of(format), src.data(), n_blocks, little.data());
    blocks = little.data();
  }
  const Memory expected(0, c.n_elements() * out_bytes(out));
  use_isa("scalar");
  dequantize(format, out, Store::kPlain, false, blocks, n_blocks, expected.data());
  for (const char* isa : available_isas()) {
    use_isa(isa);
    run(c, src.data(), expected.data());
  }
  return 0;
}
