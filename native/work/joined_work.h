// Work with one result, which is joined from those of the chunks: in their order, whichever thread is done
// first.
#pragma once

#include <cstdint>
#include <map>

#include "core/mutex.h"
#include "work/chunked_work.h"

namespace gguf {

/** A Result has `join`, which adds what comes after it. */
template <class Result>
class JoinedWork : public ChunkedWork {
 protected:
  /** `before`: the result of what comes before, if that is a whole number of chunks. */
  JoinedWork(uint64_t n_units, uint64_t chunk_units, Unit unit, const Result& before)
      : ChunkedWork(n_units, chunk_units, unit), total_(before) {}

  /**
   * Adds the result of units `first` to `first + count - 1`: at once if all before it are there. Returns
   * whether all units are: then no other thread works any more. Any thread. Throws bad_alloc.
   */
  bool join(uint64_t first, uint64_t count, const Result& result) {
    const MutexLock lock(mutex_);
    waiting_.emplace(first, Waiting{count, result});
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == n_joined_;
         next = waiting_.erase(next)) {
      total_.join(next->second.result);
      n_joined_ += next->second.count;
    }
    return n_joined_ == n_units();
  }

  /** `before`, and once all units are joined, all. While no other thread works. */
  const Result& total() const GGUF_NEEDS_NO_LOCK { return total_; }

 private:
  struct Waiting {
    uint64_t count;
    Result result;
  };

  Mutex mutex_;
  Result total_ GGUF_GUARDED_BY(mutex_);
  uint64_t n_joined_ GGUF_GUARDED_BY(mutex_) = 0;
  /** By their first unit: about one for each thread. */
  std::map<uint64_t, Waiting> waiting_ GGUF_GUARDED_BY(mutex_);
};

}  // namespace gguf
