// Products of rows of blocks with vectors, by several threads at once: dequant/products.h has the rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dequant/products.h"
#include "work/chunked_work.h"
#include "work/decode_blocks.h"
#include "work/prepared_rows.h"

namespace gguf {

/** What is multiplied with what. n_vectors * n_rows and n_vectors * columns fit in 64 bits, as bytes too. */
struct ProductShape {
  Format format;
  uint64_t columns = 0;  // numbers of a row and of a vector: whole blocks; not 0 unless n_rows is 0
  uint64_t n_rows = 0;   // consecutive rows, from the first block of a source on
  uint64_t n_vectors = 0;
  Activations activations = Activations::kFloat32;
  std::shared_ptr<const PreparedRows> prepared =
      nullptr;             // of all rows of the matrix; nullptr: none, or not all yet
  uint64_t first_row = 0;  // of these

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

/** Rows of a matrix, chunk by chunk, wherever they are. Its units are rows. */
class ChunkedRows : public ChunkedWork {
 protected:
  /** A chunk has `chunk_rows`, a row `row_elements` of the result. `prepared`: whether rows are read or
   * written in that form. */
  ChunkedRows(const BlockSource& source, const ProductShape& shape, uint64_t chunk_rows,
              uint64_t row_elements, bool prepared);

  /** Whether rows from `first` on are read where they are: else `rows` is nullptr. */
  virtual bool reads_source(uint64_t) const { return true; }
  /** Does what is to be done with `count` rows, the first of which is at `rows`. */
  virtual void use_rows(uint64_t first, uint64_t count, const uint8_t* rows, float* scratch) = 0;
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;

  const BlockSource source_;
  const ProductShape shape_;
  const Products products_;
};

/** Multiplies chunks of rows with all vectors. */
class ChunkedProduct : public ChunkedRows {
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
  bool reads_source(uint64_t first) const override;
  void use_rows(uint64_t first, uint64_t count, const uint8_t* rows, float* scratch) override;

  const float* const shared_vectors_;  // nullptr where packed_ has them
  const PackedVectors packed_;
};

/** Prepares all rows of a matrix for products with several vectors. */
class ChunkedPreparation : public ChunkedRows {
 public:
  static constexpr uint64_t kVectors = IntegerProducts::kPreparedVectors;

  /** `shape` is that of products with kVectors vectors. Throws bad_alloc. */
  static std::shared_ptr<PreparedRows> memory_for(const ProductShape& shape);
  ChunkedPreparation(const BlockSource& source, const ProductShape& shape, int threads,
                     std::shared_ptr<PreparedRows> prepared);
  /** What was not completed takes no memory. */
  ~ChunkedPreparation() override;

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override;
  void use_rows(uint64_t first, uint64_t count, const uint8_t* rows, float* scratch) override;

  const std::shared_ptr<PreparedRows> prepared_;
};

}  // namespace gguf
