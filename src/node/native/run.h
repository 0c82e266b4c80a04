// Running a call: code for the processor that is there, heads over threads.
#pragma once
#include <sched.h>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include "heads.h"

namespace {

enum Work { kForward, kBackward, kStep };

template <int kBytes>
INLINE void runHead(Work work, const Call& c, int64_t index) {
  typedef Heads<kBytes> K;
  if (work == kForward) K::forwardHead(c, index);
  if (work == kBackward) K::backwardHead(c, index);
  if (work == kStep) K::stepHead(c, index);
}

__attribute__((flatten, target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma"))) void avx512(Work work, const Call& c,
                                                                                          int64_t index) {
  runHead<64>(work, c, index);
}

__attribute__((flatten, target("avx2,fma"))) void avx2(Work work, const Call& c, int64_t index) {
  runHead<32>(work, c, index);
}

__attribute__((flatten)) void baseline(Work work, const Call& c, int64_t index) { runHead<16>(work, c, index); }

typedef void (*RunHead)(Work, const Call&, int64_t);

// The best that the processor has; TFLA_TARGET=avx2 or baseline asks for less, to compare.
RunHead chooseTarget() {
  const char* wanted = getenv("TFLA_TARGET");
  const bool any = !wanted || !*wanted;
  const bool has512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const bool has2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has512 && has2 && (any || !strcmp(wanted, "avx512"))) return avx512;
  if (has2 && (any || !strcmp(wanted, "avx2"))) return avx2;
  return baseline;
}

// As many as TensorFlow is told to use inside an operation, else the processors that this process may use.
int threadCount() {
  const char* wanted = getenv("TF_NUM_INTRAOP_THREADS");
  const int count = wanted ? atoi(wanted) : 0;
  if (count > 0) return count;
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Threads that wait for work. They are never ended: the process's end does that. One call at a time has them; another,
// from a worker thread, meanwhile works alone.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; i++) std::thread(&Pool::wait, this).detach();
  }

  void each(int64_t count, const std::function<void(int64_t)>& task) {
    std::unique_lock<std::mutex> alone(calls, std::try_to_lock);
    if (!alone.owns_lock()) {
      for (int64_t i = 0; i < count; i++) task(i);
      return;
    }
    {
      std::lock_guard<std::mutex> lock(mutex);
      current = &task;
      tasks = count;
      next = 0;
    }
    wake.notify_all();
    work();
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [&] { return running == 0; });
    current = nullptr;
  }

 private:
  void work() {
    for (int64_t i; (i = next.fetch_add(1)) < tasks;) (*current)(i);
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return current && next < tasks; });
      running++;
      lock.unlock();
      work();
      lock.lock();
      if (--running == 0) done.notify_all();
    }
  }

  std::mutex calls, mutex;
  std::condition_variable wake, done;
  const std::function<void(int64_t)>* current = nullptr;
  int64_t tasks = 0;
  std::atomic<int64_t> next{0};
  int running = 0;
};

// Below this many multiplications waking a thread takes longer than it saves.
constexpr double kAlone = 1e6;

void run(Work work, const Call& c) {
  static const RunHead runHead = chooseTarget();
  static Pool* const pool = new Pool(threadCount());
  const int64_t heads = c.B * c.H;
  const double size = double(heads) * double(c.Nq + c.Nk) * double(c.r) * double(c.d);
  if (heads > 1 && size > kAlone) {
    pool->each(heads, [&](int64_t i) { runHead(work, c, i); });
  } else {
    for (int64_t i = 0; i < heads; i++) runHead(work, c, i);
  }
}

}  // namespace
