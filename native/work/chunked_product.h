// Products of rows of blocks with vectors, by several threads at once: dequant/products.h has the rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dequant/products.h"
#include "work/chunked_work.h"
#include "work/decode_blocks.h"

namespace gguf {

/** What is multiplied with what. n_vectors * n_rows and n_vectors * columns fit in 64 bits, as bytes too. */
struct ProductShape {
  Format format;
  uint64_t columns = 0;  // numbers of a row and of a vector: whole blocks; not 0 unless n_rows is 0
  uint64_t n_rows = 0;   // consecutive rows, from the first block of a source on
  uint64_t n_vectors = 0;
  Activations activations = Activations::kFloat32;

  uint64_t row_bytes() const { return columns / format.block_elements * format.block_bytes; }
  uint64_t n_results() const { return n_rows * n_vectors; }
  /** How many numbers are multiplied with how many: saturates. */
  uint64_t n_multiplications() const;
};

/**
 * Multiplications that take a thread about as long as it takes another thread to start with its share: 5 us.
 */
constexpr uint64_t kThreadMultiplications = uint64_t{64} << 10;

/** How many of at most `most` threads so many multiplications are worth. */
inline int useful_product_threads(uint64_t n_multiplications, uint64_t most) {
  return useful_threads(n_multiplications / kThreadMultiplications, most);
}

/** Vectors as products read them. Their memory is used again: a call for one vector allocates nothing. */
class PackedVectors {
 public:
  /** Packs the `n` numbers at `x`, on up to `threads`; nothing if that is nullptr. Throws bad_alloc. */
  PackedVectors(const Products& products, const float* x, uint64_t n, int threads);
  ~PackedVectors();
  PackedVectors(const PackedVectors&) = delete;
  PackedVectors& operator=(const PackedVectors&) = delete;

  const float* floats() const { return memory_.floats; }

  struct Memory {
    float* floats = nullptr;  // aligned to 64 bytes
    size_t n_bytes = 0;
  };

 private:
  Memory memory_;
};

/** Multiplies chunks of rows with all vectors. Its units are rows. */
class ChunkedProduct : public ChunkedWork {
 public:
  /**
   * Copies the vectors, one after the other at `x`: they may change afterwards, and `y` may overlap them. The
   * product of row r and vector v goes to y[v * n_rows + r]; `y` may be null until set_output() is called.
   * `threads`: how many will work. `other`: a product with the same vectors, which exists as long as this
   * one; what it has packed is used where it fits. Throws bad_alloc.
   */
  ChunkedProduct(const BlockSource& source, const ProductShape& shape, const float* x, int threads, float* y,
                 const ChunkedProduct* other = nullptr);

 private:
  /** The vectors of `other` as this product reads them; nullptr where they have another form. */
  const float* vectors_of(const ChunkedProduct* other) const;
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;

  const BlockSource source_;
  const ProductShape shape_;
  const Products products_;
  const float* const shared_vectors_;  // nullptr where packed_ has them
  const PackedVectors packed_;
};

}  // namespace gguf
