// Results of chunks, joined in the order of the chunks whichever thread is done first.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace gguf {

/** A Result has `join`, which adds what comes after it. */
template <class Result>
class JoinedChunks {
 public:
  explicit JoinedChunks(const Result& start) : total_(start) {}

  /**
   * Adds the result of units `first` to `first + count - 1`: at once if all before it are there. Returns how
   * many units from the first on have been joined. Any thread. Throws bad_alloc.
   */
  uint64_t add(uint64_t first, uint64_t count, const Result& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.emplace(first, Waiting{count, result});
    for (auto next = waiting_.begin(); next != waiting_.end() && next->first == n_joined_;
         next = waiting_.erase(next)) {
      total_.join(next->second.result);
      n_joined_ += next->second.count;
    }
    return n_joined_;
  }

  /** Good once all are there. */
  const Result& total() const { return total_; }

 private:
  struct Waiting {
    uint64_t count;
    Result result;
  };

  std::mutex mutex_;
  Result total_;
  uint64_t n_joined_ = 0;
  std::map<uint64_t, Waiting> waiting_;  // by their first unit: about one for each thread
};

}  // namespace gguf
