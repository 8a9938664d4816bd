// The primitives of avx2_bytes.h with the instruction for dot products, and those of avx2.h once more; see
// primitives.h. The instruction is emulated, for machines that lack it; others use it in all other tests.
#include "dequant/simd/avx2_vnni.h"
#include "test/native/dequant/primitives.h"

#if defined(GGUF_VNNI)
#include <immintrin.h>

GGUF_TARGET_BEGIN("avx2,f16c,fma")
namespace gguf::test {
namespace {
inline __m256i emulated_dpbusd(__m256i sums, __m256i w, __m256i x) {
  uint8_t levels[32];
  int8_t codes[32];
  int32_t sum[8];
  std::memcpy(levels, &w, sizeof w);
  std::memcpy(codes, &x, sizeof x);
  std::memcpy(sum, &sums, sizeof sums);
  for (int i = 0; i < 32; ++i) sum[i / 4] += levels[i] * codes[i];
  std::memcpy(&sums, sum, sizeof sums);
  return sums;
}
}  // namespace
}  // namespace gguf::test
#undef GGUF_DPBUSD
#define GGUF_DPBUSD gguf::test::emulated_dpbusd
#undef GGUF_ISA_FEATURES
#define GGUF_ISA_FEATURES "avx2,f16c,fma"
// The set comes first, whatever the alphabet says.
// clang-format off
#include "dequant/simd/avx2_bytes.h"
#include "test/native/dequant/primitive_cases.h"
// clang-format on
GGUF_TARGET_END

namespace gguf::test {
namespace {
constexpr PrimitiveTable renamed(PrimitiveTable table) {
  table.isa = "avx2_vnni";
  return table;
}
constexpr PrimitiveTable kPrimitives = renamed(cases::kPrimitives);
}  // namespace
const PrimitiveTable* const kAvx2VnniPrimitives = &kPrimitives;
}  // namespace gguf::test
#else
namespace gguf::test {
const PrimitiveTable* const kAvx2VnniPrimitives = nullptr;
}  // namespace gguf::test
#endif
