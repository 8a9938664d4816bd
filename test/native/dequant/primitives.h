// The primitives of simd/ as plain functions, for primitives_test.cc: each instruction set compiles
// primitive_cases.h in a file of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dequant/codebooks.h"
#include "dequant/half.h"
#include "dequant/levels.h"
#include "dequant/out.h"
#include "dequant/simd/target.h"

namespace gguf::test {

/** What the primitives get. Every one takes what it needs of it. */
struct PrimitiveInput {
  alignas(64) uint8_t bytes[640];  // any bits
  float a, b;                      // any numbers
  float scale;                     // a binary16 number times an integer of up to six bits
};

/** What they give. What they do not write stays as it is. */
struct PrimitiveOutput {
  alignas(64) uint8_t bytes[384];
};

/** How an output is compared: NaNs are equal to each other. */
enum class Kind : uint8_t { kBytes, kFloat64, kFloat32, kFloat16, kBFloat16 };

/** A primitive with its template arguments. */
struct PrimitiveCase {
  const char* name;
  Kind kind;
  void (*run)(const PrimitiveInput& in, PrimitiveOutput& out);
};

struct PrimitiveTable {
  const char* isa;
  const PrimitiveCase* cases;
  size_t n_cases;
};

/** Their table where primitive_cases.h defines it. */
#define GGUF_THESE_PRIMITIVES nullptr

// nullptr where the compiler's target has no such instructions.
extern const PrimitiveTable* const kScalarPrimitives;
extern const PrimitiveTable* const kAvx2Primitives;
extern const PrimitiveTable* const kAvx2VnniPrimitives;
extern const PrimitiveTable* const kAvx512Primitives;
extern const PrimitiveTable* const kNeonPrimitives;
extern const PrimitiveTable* const kNeonDotprodPrimitives;
extern const PrimitiveTable* const kWasmPrimitives;

}  // namespace gguf::test
