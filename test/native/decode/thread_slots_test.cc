#include "decode/thread_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "test/native/decode/decode_support.h"

namespace gguf::test {
namespace {

/** Read for the first time by the tests: more threads than most machines have. */
const bool pool_size_is_set = [] {
#ifdef _WIN32
  return _putenv_s("UV_THREADPOOL_SIZE", "9") == 0;
#else
  return setenv("UV_THREADPOOL_SIZE", "9", 1) == 0;
#endif
}();

/** An environment that takes slots. */
struct Holder {
  int held = 0;

  bool take() {
    const bool taken = thread_slots::take(held);
    held += taken;
    return taken;
  }
  void give_back_all() {
    for (; held > 0; --held) thread_slots::give_back();
  }
};

int slots_for_one() {
  Holder holder;
  while (holder.take()) {
  }
  const int n_slots = holder.held;
  holder.give_back_all();
  return n_slots;
}

TEST(ThreadSlots, OneThreadOfThePoolStaysFree) {
  ASSERT_TRUE(pool_size_is_set);
  EXPECT_FALSE(thread_slots::is_pool_of_one());
  const int hardware = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(thread_slots::limit(), std::clamp(hardware, 1, 8));
}

TEST(ThreadSlots, OneEnvironmentGetsAll) {
  thread_slots::job_started(true);
  EXPECT_EQ(slots_for_one(), thread_slots::limit());
  EXPECT_EQ(slots_for_one(), thread_slots::limit());  // they were given back
  thread_slots::job_ended(true);
}

TEST(ThreadSlots, TheFirstIsAlwaysGranted) {
  thread_slots::job_started(true);
  Holder first;
  while (first.take()) {
  }
  Holder others[5];
  for (Holder& other : others) {
    thread_slots::job_started(true);
    EXPECT_TRUE(other.take());
    EXPECT_FALSE(other.take());  // all are in use
  }
  for (Holder& other : others) {
    other.give_back_all();
    thread_slots::job_ended(true);
  }
  first.give_back_all();
  thread_slots::job_ended(true);
}

TEST(ThreadSlots, AreSharedAmongEnvironmentsWithJobs) {
  for (int i = 0; i < 2; ++i) thread_slots::job_started(true);
  EXPECT_EQ(slots_for_one(), std::max(1, thread_slots::limit() / 2));
  thread_slots::job_started(false);  // another job of the same environment changes nothing
  EXPECT_EQ(slots_for_one(), std::max(1, thread_slots::limit() / 2));
  thread_slots::job_ended(false);
  thread_slots::job_ended(true);
  EXPECT_EQ(slots_for_one(), thread_slots::limit());
  thread_slots::job_ended(true);
}

TEST(ThreadSlots, MoreThanOneJobContends) {
  EXPECT_FALSE(thread_slots::is_contended());
  thread_slots::job_started(true);
  EXPECT_FALSE(thread_slots::is_contended());
  thread_slots::job_started(false);
  EXPECT_TRUE(thread_slots::is_contended());
  thread_slots::job_ended(false);
  EXPECT_FALSE(thread_slots::is_contended());
  thread_slots::job_ended(true);
}

TEST(ThreadSlots, ManyEnvironmentsAtOnce) {
  constexpr int kEnvironments = 4;
  std::atomic<int> n_refused_first{0}, n_seen_contended{0}, in_use{0}, most_in_use{0};
  on_threads(kEnvironments, [&](int) {
    for (int i = 0; i < 2000; ++i) {
      thread_slots::job_started(true);
      Holder holder;
      n_refused_first += !holder.take();
      holder.take();
      const int now = in_use += holder.held;
      int most = most_in_use;
      while (now > most && !most_in_use.compare_exchange_weak(most, now)) {
      }
      n_seen_contended += thread_slots::is_contended();
      in_use -= holder.held;
      holder.give_back_all();
      thread_slots::job_ended(true);
    }
  });
  EXPECT_EQ(n_refused_first, 0);
  EXPECT_LE(most_in_use, thread_slots::limit() + kEnvironments - 1);
  EXPECT_FALSE(thread_slots::is_contended());
  thread_slots::job_started(true);
  EXPECT_EQ(slots_for_one(), thread_slots::limit());  // no slot was lost, none was counted twice
  thread_slots::job_ended(true);
}

}  // namespace
}  // namespace gguf::test
