// What lies between the products of a network: tables of functions, one for each instruction set. The rules
// are in docs/sums.md; every set gives the same bits.
#pragma once

// What kernels use of the system is included here, outside of target regions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "network/kv_cache.h"

namespace gguf {

/** In the order of their numbers in src/network. */
enum class Activation : uint8_t { kSilu, kGelu, kGeluErf, kRelu, kRelu2, kSigmoid, kTanh };
constexpr int kActivations = 7;

/** What exponents of numbers need: the largest of them, and the sum of e to the power of what each exceeds it
 * by. */
struct Powers {
  float max, sum;
};

/** How the pairs of a rotation lie in a head. */
enum class Pairs : uint8_t { kAdjacent, kHalves };

/** A query, and the positions of the cache that it sees, the last one included. */
struct Query {
  const float* x;
  float* out;
  uint64_t first, last;
  const float* sink;  // nullptr if there is none

  /** Of the whole groups of sixteen that it sees something of. */
  uint64_t n_scores() const { return last / 16 * 16 + 16 - first / 16 * 16; }
};

/** Some queries of one head of a cache: both bounds of what they see ascend. */
struct Queries {
  const Query* queries;
  uint64_t count;
  float scale, cap;  // a cap of 0: none
  /** Memory for count * stride() scores and attention_sum_floats() numbers, aligned to a cache line. */
  float* scratch;

  /** The first position that scores are kept for. */
  uint64_t begin() const { return queries[0].first / 16 * 16; }
  /** Numbers from the scores of one query to those of the next. */
  uint64_t stride() const { return (queries[count - 1].last - begin()) / 16 * 16 + 16; }
};

/** Queries that are worked on together, at most. */
constexpr uint64_t kMostQueriesTogether = 4;

/** What is needed beside scores: for sums of values. */
inline uint64_t attention_sum_floats(const KvCache& cache) {
  return 2 * kMostQueriesTogether * cache.value_stride();
}

/** `x` and `out` are the same, or do not overlap. */
struct NetworkKernels {
  const char* isa;
  void (*rms_norm)(const float* x, const float* weight, uint64_t width, float epsilon, float* out);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, uint64_t width, float epsilon,
                     float* out);
  void (*normalize)(const float* x, uint64_t width, float* out);
  /** A cap of 0: none. */
  void (*softmax)(const float* x, uint64_t width, float scale, float cap, float* out);
  Powers (*powers)(const float* x, uint64_t n);
  /** Times `up`, unless that is nullptr. */
  void (*activate[kActivations])(const float* x, const float* up, uint64_t n, float* out);
  void (*add)(float* x, const float* y, uint64_t n);
  void (*scale)(float* x, uint64_t n, float factor);
  /** One head; `table` has the cosines of all pairs, then their sines. */
  void (*rotate[2])(const float* x, uint64_t pairs, const float* table, float* out);
  void (*attend)(const KvCache& cache, uint64_t head, const Queries& queries);
};

// One per source file of isa/; nullptr if the compiler's target has no such instructions.
extern const NetworkKernels* const kScalarNetwork;
extern const NetworkKernels* const kAvx2Network;
extern const NetworkKernels* const kAvx512Network;
extern const NetworkKernels* const kNeonNetwork;
extern const NetworkKernels* const kWasmNetwork;

/** Those of the instruction set in use. */
const NetworkKernels& network_kernels();

/** What rounding x, whole runs of 32 numbers, to int8 loses, by step 1 of dequant/integer_products.h. */
void rounding_error(const float* x, uint64_t n, float* out);

/** The mean of each column of `n` rows, one at least. */
void mean_of_rows(const float* x, uint64_t n, uint64_t width, float* out);

}  // namespace gguf
