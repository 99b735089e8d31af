// SPDX-License-Identifier: Apache-2.0
// The thread pool: each chunk once, several callers at once, and a forked child that starts anew. It runs no compiled
// code.
#include "runtime/cpu/jit.h"
#include "runtime/cpu/pool.h"
#include <atomic>
#include <gtest/gtest.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace elsewise {
namespace {

void expect_each_once(int64_t count) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  parallel_for(count, [&](int64_t i) { ++seen[size_t(i)]; });
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(seen[size_t(i)], 1) << i << " of " << count;
}

class Pool : public ::testing::Test {
protected:
  void TearDown() override { set_cpu_threads(0); }
};

TEST_F(Pool, EveryChunkOnce) {
  for (int threads : {1, 2, 3, 8, 2})
    for (int64_t count : {0, 1, 2, 3, 100, 10000}) {
      set_cpu_threads(threads);
      expect_each_once(count);
    }
}

TEST_F(Pool, SeveralThreadsWork) {
  set_cpu_threads(3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> arrived = 0;
  parallel_for(3, [&](int64_t) { // each waits for the others, so that no thread can do two
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
    std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3u);
}

TEST_F(Pool, ManyCallersAtOnce) {
  set_cpu_threads(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum = 0;
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&sum] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> own = 0;
        parallel_for(17, [&](int64_t i) { own += i; });
        sum += own;
      }
    });
  for (std::thread &t : callers) t.join();
  EXPECT_EQ(sum, 6 * 200 * (16 * 17 / 2));
}

// A body may itself start a loop: nobody waits for a thread that waits for him.
TEST_F(Pool, NestedLoopsEnd) {
  set_cpu_threads(3);
  std::atomic<int> total = 0;
  parallel_for(5, [&](int64_t) { parallel_for(7, [&](int64_t) { ++total; }); });
  EXPECT_EQ(total, 35);
}

TEST_F(Pool, AForkedChildHasItsOwnThreads) {
  set_cpu_threads(4);
  std::atomic<bool> stop = false;
  std::thread busy([&] { // the pool is in use at the moment of every fork
    while (!stop) expect_each_once(50);
  });
  bool ended_well = true;
  for (int round = 0; round < 20 && ended_well; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20); // a hang is a death by signal
      std::atomic<int64_t> sum = 0;
      parallel_for(1000, [&](int64_t i) { sum += i; });
      _exit(sum == 499500 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ended_well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  stop = true;
  busy.join();
  EXPECT_TRUE(ended_well);
}

TEST_F(Pool, UsesTheCoresOfThisProcess) {
  set_cpu_threads(0);
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(cpu_threads(), CPU_COUNT(&allowed));
  set_cpu_threads(7);
  EXPECT_EQ(cpu_threads(), 7);
}

} // namespace
} // namespace elsewise
