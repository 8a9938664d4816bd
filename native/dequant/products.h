// Products of rows of blocks with vectors: y[v][row] = the sum over all columns c of w[row][c] * x[v][c].
//
// There are two rules, each of which gives the same bits on every instruction set, for any number of vectors
// at a time and for any split of the rows: that of number_products.h for vectors of binary32, and that of
// integer_products.h for vectors that are rounded to 8 bits.
#pragma once

#include <cstdint>
#include <variant>

#include "dequant/integer_products.h"
#include "dequant/number_products.h"

namespace gguf {

/** What vectors are rounded to before they are multiplied. */
enum class Activations : uint8_t {
  kFloat32,  // nothing: the rule of number_products.h
  kInt8,     // the rule of integer_products.h; for formats whose blocks are numbers the same as kFloat32
};

/**
 * The products of rows of one format with `n` vectors of `columns` numbers. Made once for a call, used by
 * every thread of it. It allocates nothing: whoever makes it brings memory for the packed vectors, which all
 * threads read, and scratch for each thread.
 */
class Products {
 public:
  /** `columns` is a multiple of the numbers of a block: 0 only if there will be no rows. `prepared`: whether
   * there are prepared rows. */
  Products(const Format& format, bool big_endian, uint64_t columns, uint64_t n,
           Activations activations = Activations::kFloat32, bool prepared = false) noexcept
      : products_(uses_integers(format, activations)
                      ? Either(IntegerProducts(format, big_endian, columns, n, prepared))
                      : Either(NumberProducts(format, big_endian, columns, n))) {}

  /** How many floats `pack` writes: about n * columns, or a third to 0.6 of that with kInt8. */
  uint64_t packed_floats() const noexcept {
    return std::visit([](const auto& products) { return products.packed_floats(); }, products_);
  }
  /** How many floats of scratch `multiply` needs: up to 220 KB, and up to 6 KB more for each vector if
   * rows are long. */
  uint64_t scratch_floats() const noexcept {
    return std::visit([](const auto& products) { return products.scratch_floats(); }, products_);
  }

  /** Brings the vectors, one after the other at `x`, into the form that `multiply` reads; or a part of them,
   * as several threads do at the same time. */
  void pack(const float* x, float* packed, uint64_t part = 0, uint64_t n_parts = 1) const noexcept {
    std::visit([=](const auto& products) { products.pack(x, packed, part, n_parts); }, products_);
  }

  /**
   * Multiplies n_rows rows, whose blocks follow each other from `rows` on, without alignment, with the packed
   * vectors: product v of row r goes to y[v * y_stride + r]. Reads not a byte beyond the blocks. `packed` and
   * `scratch` are aligned to 64 bytes, which makes it faster, or to 4. Threads may do this at the same time,
   * each with scratch and rows of its own; fastest where the number of rows is a multiple of rows_at_once().
   * `prepared`: the same rows, as prepare() wrote them, if reads_prepared(); then not `rows`.
   */
  void multiply(const uint8_t* rows, uint64_t n_rows, const float* packed, float* scratch, float* y,
                uint64_t y_stride, const float* prepared = nullptr) const noexcept {
    if (const auto* const products = std::get_if<IntegerProducts>(&products_)) {
      products->multiply(rows, n_rows, packed, scratch, y, y_stride, prepared);
    } else {
      std::get<NumberProducts>(products_).multiply(rows, n_rows, packed, scratch, y, y_stride);
    }
  }

  bool reads_prepared() const noexcept {
    const auto* const products = std::get_if<IntegerProducts>(&products_);
    return products != nullptr && products->reads_prepared();
  }
  /** How many floats a row takes that is unpacked once for several calls: 0 where rows are not unpacked. */
  uint64_t prepared_floats() const noexcept {
    const auto* const products = std::get_if<IntegerProducts>(&products_);
    return products == nullptr ? 0 : products->prepared_floats();
  }
  /** Unpacks rows into the order of tiles, with scratch as multiply() has it. They start at a multiple of
   * rows_at_once(), and so does what multiply() is given of them; they take a multiple of that many. */
  void prepare(const uint8_t* rows, uint64_t n_rows, float* scratch, float* to) const noexcept {
    std::get<IntegerProducts>(products_).prepare(rows, n_rows, scratch, to);
  }

  static constexpr uint64_t rows_at_once(const Format& format, Activations activations) {
    return uses_integers(format, activations) ? IntegerProducts::kRowsAtOnce : NumberProducts::kRowsAtOnce;
  }

 private:
  using Either = std::variant<NumberProducts, IntegerProducts>;

  static constexpr bool uses_integers(const Format& format, Activations activations) {
    return activations == Activations::kInt8 && format.block_elements > 1;
  }

  Either products_;
};

}  // namespace gguf
