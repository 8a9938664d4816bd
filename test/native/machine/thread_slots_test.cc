// How many threads environments get for asynchronous work.
#include "machine/thread_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "test/native/machine/on_threads.h"

namespace gguf::test {
namespace {

TEST(PoolSize, IsWhatLibuvMakesOfTheSetting) {
  EXPECT_EQ(pool_size_of("6"), 6);
  EXPECT_EQ(pool_size_of(" 6 threads"), 6);
  EXPECT_EQ(pool_size_of(""), 1);
  EXPECT_EQ(pool_size_of("many"), 1);
  EXPECT_EQ(pool_size_of("0"), 1);
  EXPECT_EQ(pool_size_of("1024"), 1024);
  EXPECT_EQ(pool_size_of("1025"), 1024);
  EXPECT_EQ(pool_size_of("-1"), 1024);
  EXPECT_EQ(pool_size_of("99999999999999999999"), 1024);
  EXPECT_EQ(pool_size_of("-99999999999999999999"), sizeof(long) == 8 ? 1 : 1024);
}

/** An environment that takes slots. */
class Holder {
 public:
  explicit Holder(ThreadSlots& slots) : slots_(slots) {}

  bool take_task() {
    const bool taken = slots_.take_task(threads_);
    tasks_ += taken;
    threads_ += taken;
    return taken;
  }
  bool take_helper() {
    const bool taken = slots_.take_helper(threads_);
    threads_ += taken;
    return taken;
  }
  /** As many tasks as there are, and then their helpers. */
  void take_all() {
    while (take_task()) {
    }
    while (take_helper()) {
    }
  }
  void give_back_all() {
    slots_.give_back(tasks_, threads_);
    tasks_ = threads_ = 0;
  }
  int tasks() const { return tasks_; }
  int threads() const { return threads_; }

 private:
  ThreadSlots& slots_;
  int tasks_ = 0;
  int threads_ = 0;
};

/** How many threads one environment gets. */
int threads_for_one(ThreadSlots& slots) {
  Holder holder(slots);
  holder.take_all();
  const int n_threads = holder.threads();
  holder.give_back_all();
  return n_threads;
}

TEST(ThreadSlots, AreAsManyAsThreadsThatRun) {
  EXPECT_EQ(ThreadSlots(1, std::nullopt).limit(), 1);
  EXPECT_EQ(ThreadSlots(64, std::nullopt).limit(), 64);
}

TEST(ThreadSlots, AreFewerThanThePoolHasWhereItsSizeIsSet) {
  EXPECT_EQ(ThreadSlots(64, 9).limit(), 8);
  EXPECT_EQ(ThreadSlots(4, 9).limit(), 4);
  EXPECT_EQ(ThreadSlots(4, 2).limit(), 1);
  EXPECT_EQ(ThreadSlots(4, 1).limit(), 1);
}

TEST(ThreadSlots, KnowAPoolOfOne) {
  EXPECT_TRUE(ThreadSlots(4, 1).is_pool_of_one());
  EXPECT_FALSE(ThreadSlots(4, 2).is_pool_of_one());
  EXPECT_FALSE(ThreadSlots(1, std::nullopt).is_pool_of_one());
}

TEST(ThreadSlots, OneTaskGetsAllThreads) {
  ThreadSlots slots(16, std::nullopt);
  slots.job_started(true);
  Holder holder(slots);
  EXPECT_TRUE(holder.take_task());
  while (holder.take_helper()) {
  }
  EXPECT_EQ(holder.threads(), 16);
  EXPECT_FALSE(holder.take_task());
  holder.give_back_all();
  EXPECT_EQ(threads_for_one(slots), 16);  // they were given back
}

TEST(ThreadSlots, OneThreadOfThePoolStaysFree) {
  for (const auto& [pool_size, most_tasks] :
       std::vector<std::pair<std::optional<int>, int>>{{std::nullopt, 3}, {9, 8}, {2, 1}, {1, 1}}) {
    ThreadSlots slots(16, pool_size);
    slots.job_started(true);
    Holder holder(slots);
    holder.take_all();
    EXPECT_EQ(holder.tasks(), most_tasks);
    EXPECT_EQ(holder.threads(), slots.limit());
    holder.give_back_all();
  }
}

TEST(ThreadSlots, EveryEnvironmentGetsOne) {
  ThreadSlots slots(4, std::nullopt);
  slots.job_started(true);
  Holder first(slots);
  first.take_all();
  for (int i = 0; i < 5; ++i) {
    slots.job_started(true);
    Holder other(slots);
    EXPECT_TRUE(other.take_task());
    EXPECT_FALSE(other.take_task());  // all are in use
    EXPECT_FALSE(other.take_helper());
    other.give_back_all();
  }
}

TEST(ThreadSlots, AreSharedAmongEnvironmentsWithJobs) {
  ThreadSlots slots(8, std::nullopt);
  for (int i = 0; i < 2; ++i) slots.job_started(true);
  EXPECT_EQ(threads_for_one(slots), 4);
  slots.job_started(false);  // another job of the same environment changes nothing
  EXPECT_EQ(threads_for_one(slots), 4);
  slots.job_ended(false);
  slots.job_ended(true);
  EXPECT_EQ(threads_for_one(slots), 8);
}

TEST(ThreadSlots, MoreThanOneJobContends) {
  ThreadSlots slots(4, std::nullopt);
  EXPECT_FALSE(slots.is_contended());
  slots.job_started(true);
  EXPECT_FALSE(slots.is_contended());
  slots.job_started(false);
  EXPECT_TRUE(slots.is_contended());
  slots.job_ended(false);
  EXPECT_FALSE(slots.is_contended());
}

TEST(ThreadSlots, ManyEnvironmentsAtOnce) {
  constexpr int kEnvironments = 4;
  ThreadSlots slots(3, std::nullopt);
  std::atomic<int> n_refused_first{0}, in_use{0}, most_in_use{0};
  on_threads(kEnvironments, [&](int) {
    for (int i = 0; i < 2000; ++i) {
      slots.job_started(true);
      Holder holder(slots);
      n_refused_first += !holder.take_task();
      holder.take_helper();
      const int now = in_use += holder.threads();
      int most = most_in_use;
      while (now > most && !most_in_use.compare_exchange_weak(most, now)) {
      }
      in_use -= holder.threads();
      holder.give_back_all();
      slots.job_ended(true);
    }
  });
  EXPECT_EQ(n_refused_first, 0);
  EXPECT_LE(most_in_use, slots.limit() + kEnvironments - 1);
  EXPECT_FALSE(slots.is_contended());
  slots.job_started(true);
  EXPECT_EQ(threads_for_one(slots), slots.limit());  // no slot was lost, none was counted twice
}

}  // namespace
}  // namespace gguf::test
