// Under ThreadSanitizer these tests also show that whatever a helper wrote is there when run() returns.
#include "machine/helper_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "machine/processors.h"
#include "test/native/core/allocation_meter.h"
#include "test/native/machine/on_threads.h"

namespace gguf::test {
namespace {

using Scratch = std::vector<uint8_t>;

TEST(HelperThreads, WorkOnACallUpToTheNumberAskedFor) {
  HelperThreads pool;
  Scratch scratch;
  for (int n_helpers : {0, 1, 2, 3, 1, 0}) {
    std::mutex mutex;
    std::set<std::thread::id> workers;
    pool.run(n_helpers, scratch, [&](Scratch&) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      for (size_t n = 0;
           n < static_cast<size_t>(n_helpers) + 1 && std::chrono::steady_clock::now() < deadline;) {
        const std::lock_guard<std::mutex> lock(mutex);
        workers.insert(std::this_thread::get_id());
        n = workers.size();
      }
    });
    EXPECT_EQ(workers.size(), static_cast<size_t>(n_helpers) + 1);
    EXPECT_EQ(workers.count(std::this_thread::get_id()), 1u);
  }
}

TEST(HelperThreads, HaveReturnedWhenRunDoes) {
  HelperThreads pool;
  Scratch scratch;
  for (int round = 0; round < 500; ++round) {
    int n_done = 0;  // not atomic: run() orders what helpers write
    std::mutex mutex;
    pool.run(2, scratch, [&](Scratch&) {
      const std::lock_guard<std::mutex> lock(mutex);
      ++n_done;
    });
    EXPECT_GE(n_done, 1);
    EXPECT_LE(n_done, 3);
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // helpers fall asleep
  }
}

TEST(HelperThreads, ServeSeveralCallersAtTheSameTime) {
  HelperThreads pool;
  std::atomic<int> n_left{4 * 300};
  on_threads(4, [&](int) {
    Scratch scratch;
    for (int round = 0; round < 300; ++round) {
      std::atomic<int> n_done{0};
      std::atomic<int> n_active{0};
      pool.run(1, scratch, [&](Scratch&) {
        EXPECT_LE(++n_active, 2);
        ++n_done;
        --n_active;
      });
      EXPECT_GE(n_done, 1);
      EXPECT_LE(n_done, 2);
      --n_left;
    }
  });
  EXPECT_EQ(n_left, 0);
}

TEST(HelperThreads, HelpAnotherCallWhileSomeAreBusy) {
  if (processors() < 2) GTEST_SKIP() << "only one thread runs at a time here";
  HelperThreads pool;
  const auto run_with_helper = [&pool](const auto& meanwhile) {
    Scratch scratch;
    std::atomic<int> n_arrived{0}, n_done{0};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto wait_for_both = [&deadline](const std::atomic<int>& n) {
      while (n < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    };
    const std::thread::id caller = std::this_thread::get_id();
    pool.run(1, scratch, [&](Scratch&) {
      ++n_arrived;
      wait_for_both(n_arrived);
      if (n_arrived == 2 && std::this_thread::get_id() == caller) meanwhile();
      ++n_done;
      wait_for_both(n_done);
    });
    EXPECT_EQ(n_done, 2);
  };
  bool was_helped_inside = false;
  run_with_helper([&] { run_with_helper([&] { was_helped_inside = true; }); });
  EXPECT_TRUE(was_helped_inside);
}

TEST(HelperThreads, AreOnePoolAsLongAsAnyoneKeepsIt) {
  std::weak_ptr<HelperThreads> watched;
  {
    const auto first = HelperThreads::shared(), second = HelperThreads::shared();
    EXPECT_EQ(first, second);
    watched = first;
    Scratch scratch;
    first->run(1, scratch, [](Scratch&) {});
  }
  EXPECT_TRUE(watched.expired());
  EXPECT_NE(HelperThreads::shared(), nullptr);
}

TEST(HelperThreads, LeaveCallersAloneAfterStop) {
  HelperThreads pool;
  Scratch scratch;
  pool.run(2, scratch, [](Scratch&) {});
  pool.stop();
  int n_done = 0;
  pool.run(2, scratch, [&](Scratch&) { ++n_done; });
  EXPECT_EQ(n_done, 1);
}

TEST(HelperThreads, WakeEveryCallerWhoseHelpersHaveReturned) {
  if (processors() < 2) GTEST_SKIP() << "one helper serves one caller at a time here";
  HelperThreads pool;
  // Two callers that are done themselves wait for a helper each; the helpers return in the order of
  // `returns`.
  for (const auto& returns : {std::array<int, 2>{0, 1}, std::array<int, 2>{1, 0}}) {
    std::array<std::atomic<bool>, 2> is_helped{}, may_return{};
    std::atomic<int> n_returned{0};
    std::vector<std::thread> callers;
    for (int i : {0, 1}) {
      callers.emplace_back([&, i] {
        Scratch scratch;
        const std::thread::id caller = std::this_thread::get_id();
        pool.run(1, scratch, [&](Scratch&) {
          std::atomic<bool>& is_met = std::this_thread::get_id() == caller ? is_helped[i] : may_return[i];
          if (std::this_thread::get_id() != caller) is_helped[i] = true;
          while (!is_met) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
        ++n_returned;
      });
      while (!is_helped[i]) std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // both fall asleep, the first one first
    for (int n = 0; n < 2; ++n) {
      may_return[returns[n]] = true;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      while (n_returned <= n && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(n_returned, n + 1) << "a caller sleeps though its helper has returned";
    }
    // So that this test ends whatever it found: helpers of other calls wake those who sleep.
    Scratch scratch;
    while (n_returned < 2) pool.run(1, scratch, [](Scratch&) {});
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(HelperThreads, AreNotWantedOnceACallHasReturned) {
  HelperThreads pool;
  Scratch scratch;
  for (int round = 0; round < 100; ++round) {
    // More than join before such a short call returns.
    pool.run(8, scratch, [&](Scratch&) {});
    EXPECT_FALSE(pool.wants_help());
  }
  const std::thread::id caller = std::this_thread::get_id();
  pool.run(1, scratch, [&](Scratch&) {
    if (std::this_thread::get_id() == caller) return;
    Scratch its_own;
    // More than there are: this thread is one of them, and in a call already.
    pool.run(300, its_own, [&](Scratch&) {});
  });
  EXPECT_FALSE(pool.wants_help());
}

TEST(HelperThreads, ForgetACallThatHasReturned) {
  HelperThreads pool;
  Scratch scratch;
  const auto run = [&] { pool.run(1, scratch, [](Scratch&) {}); };
  run();
  const size_t before = allocated_bytes();
  for (int i = 0; i < 1000; ++i) run();
  EXPECT_EQ(allocated_bytes() - before, 0u);  // a list of calls that are over would grow
}

TEST(HelperThreads, DropScratchThatIsLarge) {
  HelperThreads pool;
  Scratch scratch;
  const std::thread::id caller = std::this_thread::get_id();
  /** What a helper finds, and what it leaves. */
  const auto scratch_found = [&](size_t n_bytes) {
    std::atomic<size_t> found{SIZE_MAX};
    pool.run(1, scratch, [&](Scratch& its_scratch) {
      if (std::this_thread::get_id() == caller) {
        while (found == SIZE_MAX) std::this_thread::yield();
      } else {
        const size_t size = its_scratch.size();
        its_scratch.resize(n_bytes);
        found = size;
      }
    });
    return found.load();
  };
  constexpr size_t kMiB = size_t{1} << 20;
  EXPECT_EQ(scratch_found(kMiB), 0u);
  EXPECT_EQ(scratch_found(5 * kMiB), kMiB);
  EXPECT_EQ(scratch_found(0), 0u);
}

#ifdef __linux__

size_t n_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(HelperThreadsDeathTest, EndWithAProcessThatKeepsThem) {
#ifdef GGUF_EMULATED
  GTEST_SKIP() << "starts its own program, which needs an emulator";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto exit_with_helpers = [] {
    static size_t n_running = 0;
    // Called after what is registered later, so after the helpers have been stopped.
    std::atexit([] {
      // The system lists a thread a little longer than a join waits for it.
      for (int tries = 0; n_threads() + 2 > n_running; ++tries) {
        if (tries == 5000) std::_Exit(3);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    const size_t n_before = n_threads();
    static const auto* const kept = new std::shared_ptr<HelperThreads>(HelperThreads::shared());
    Scratch scratch;
    (*kept)->run(2, scratch, [](Scratch&) {});
    n_running = n_threads();  // a sanitizer may have started one of its own
    if (n_running < n_before + 2) std::_Exit(4);
    std::exit(0);
  };
  EXPECT_EXIT(exit_with_helpers(), testing::ExitedWithCode(0), "");
}

#endif

}  // namespace
}  // namespace gguf::test
