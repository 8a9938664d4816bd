// Several threads at once.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace gguf::test {

/** Runs `body` on `n_threads` threads at once, with the number of each. */
inline void on_threads(int n_threads, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n_threads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gguf::test
