// Work that is a function of a range of units.
#pragma once

#include <utility>

#include "work/chunked_work.h"

namespace gguf {

/** Calls `f(first, count, scratch)` for chunks of units; on several threads at once. It may throw bad_alloc.
 */
template <class F>
class ChunkedTask final : public ChunkedWork {
 public:
  ChunkedTask(uint64_t n_units, uint64_t chunk_units, F f)
      : ChunkedWork(n_units, chunk_units, Unit{1, 1}), f_(std::move(f)) {}

 private:
  Status do_units(uint64_t first, uint64_t count, std::vector<uint8_t>& scratch) override {
    f_(first, count, scratch);
    return std::nullopt;
  }

  const F f_;
};

}  // namespace gguf
