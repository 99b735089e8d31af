// SPDX-License-Identifier: Apache-2.0
// The pool: a list of loops in progress, and threads that help with the first that has chunks left. It knows nothing of
// kernels.
#include "runtime/cpu/pool.h"
#include "runtime/cpu/jit.h"
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <immintrin.h>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <vector>

namespace elsewise {
namespace {

// True as soon as `ready` is, false after some tens of microseconds: as long as waking a thread takes. Calls often come
// in quick succession.
bool spin(llvm::function_ref<bool()> ready) {
  for (int i = 0; i < 1000; ++i) {
    if (ready()) return true;
    _mm_pause();
  }
  return false;
}

// On the caller's stack; the caller leaves only when no helper holds it.
struct Loop {
  llvm::function_ref<void(int64_t)> body;
  int64_t count;
  int helpers_wanted;
  std::atomic<int64_t> next = 0;
  std::atomic<int> helpers =
      0; // changed under Pool::mutex; a helper touches the loop no more once it has taken itself off

  void work() {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(i);
  }
};

class Pool {
public:
  void run(Loop &loop) {
    {
      std::lock_guard lock(mutex);
      loops.push_back(&loop);
      ++started;
      start_threads(loop.helpers_wanted);
    }
    for (int i = 0; i < loop.helpers_wanted; ++i) wake.notify_one();
    loop.work();
    std::unique_lock lock(mutex);
    if (const auto at = std::find(loops.begin(), loops.end(), &loop); at != loops.end()) loops.erase(at);
    lock.unlock();
    if (spin([&] { return loop.helpers == 0; })) return;
    lock.lock();
    done.wait(lock, [&] { return loop.helpers == 0; });
  }

private:
  // Fewer threads than asked for is no fault: the caller works through whatever nobody takes.
  void start_threads(int wanted) {
    while (threads < wanted) {
      sigset_t all, old; // signals are for the program's own threads
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &old);
      pthread_t thread;
      const bool created = pthread_create(
                               &thread, nullptr,
                               [](void *pool) -> void * {
                                 static_cast<Pool *>(pool)->help();
                                 return nullptr;
                               },
                               this) == 0;
      pthread_sigmask(SIG_SETMASK, &old, nullptr);
      if (!created) return;
      pthread_detach(thread);
      ++threads;
    }
  }

  void help() {
    std::unique_lock lock(mutex);
    for (;;) {
      Loop *loop = nullptr;
      if (!open_loop()) {
        const uint64_t seen = started;
        lock.unlock();
        spin([&] { return started != seen; });
        lock.lock();
      }
      wake.wait(lock, [&] { return (loop = open_loop()) != nullptr; });
      if (++loop->helpers == loop->helpers_wanted) loops.erase(std::find(loops.begin(), loops.end(), loop));
      lock.unlock();
      loop->work();
      lock.lock();
      if (const auto at = std::find(loops.begin(), loops.end(), loop); at != loops.end())
        loops.erase(at); // nothing is left to take
      if (--loop->helpers == 0) done.notify_all();
    }
  }
  Loop *open_loop() const { return loops.empty() ? nullptr : loops.front(); }

  std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<Loop *> loops;         // that may take another helper
  std::atomic<uint64_t> started = 0; // loops so far
  int threads = 0;
};

// Never destroyed, since its threads outlive static objects. A forked child has none of the threads and perhaps a
// locked mutex, so it drops the pool and makes another.
std::atomic<Pool *> current_pool = nullptr;
std::atomic<int> threads_set = 0;
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr, std::memory_order_release); });

Pool &pool() {
  Pool *p = current_pool.load(std::memory_order_acquire);
  if (p) return *p;
  auto *made = new Pool;
  if (current_pool.compare_exchange_strong(p, made)) return *made;
  delete made;
  return *p;
}

} // namespace

int cpu_threads() {
  if (const int n = threads_set.load(std::memory_order_relaxed)) return n;
  cpu_set_t sets[16]; // room for 16384 cores
  return sched_getaffinity(0, sizeof sets, sets) == 0 ? std::max(1, CPU_COUNT_S(sizeof sets, sets)) : 1;
}

void set_cpu_threads(int n) { threads_set.store(std::clamp(n, 0, 1024), std::memory_order_relaxed); }

void parallel_for(int64_t count, llvm::function_ref<void(int64_t)> body) {
  const int helpers = int(std::min<int64_t>(cpu_threads() - 1, count - 1));
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  Loop loop{.body = body, .count = count, .helpers_wanted = helpers};
  pool().run(loop);
}

} // namespace elsewise
