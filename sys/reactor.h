// Reactor: the only source of time and of deferred work in muster's logic.
//
// One thread owns a reactor and everything that is posted to it; callbacks never run inside post() or
// after(). Production: sys/reactor.cc. Simulation: tests/sim/world.h, with a seeded clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/steady.h"
#include "base/time.h"

namespace muster {

// While a task runs, no request is answered and no message handled; longer work must run on a worker thread,
// or in pieces.
constexpr DurationMs kLongestTask = 100;

// Of the calling thread, in nanoseconds.
int64_t thread_cpu_time();

// Detects tasks that block their reactor for longer. Measures CPU time of the reactor's thread, so that a
// busy machine or a debugger does not make a task slow.
class ReactorWatch {
 public:
  using OnSlow = std::function<void(const std::string& name, DurationMs took)>;
  using CpuClock = std::function<int64_t()>;

  explicit ReactorWatch(OnSlow on_slow = {}, CpuClock cpu = thread_cpu_time)
      : on_slow_(std::move(on_slow)), cpu_(std::move(cpu)) {}

  void on_slow(OnSlow hook) { on_slow_ = std::move(hook); }
  // Names the running task. Default: the name given to `run`.
  void label(std::string_view name) { name_ = name; }

  template <typename Work>
  void run(std::string_view name, Work&& work) {
    name_ = name;
    elsewhere_ = 0;
    const int64_t began = cpu_();
    std::forward<Work>(work)();
    judge(cpu_() - began - elsewhere_);
  }
  // Runs work that a worker thread would do in the daemon: its time is not counted.
  template <typename Work>
  auto elsewhere(Work&& work) {
    struct Span {
      explicit Span(ReactorWatch& w) : watch(w), began(w.cpu_()) {}
      ~Span() { watch.elsewhere_ += watch.cpu_() - began; }
      Span(const Span&) = delete;
      Span& operator=(const Span&) = delete;
      ReactorWatch& watch;
      int64_t began;
    } span(*this);
    return std::forward<Work>(work)();
  }

  struct Held {
    std::string name;
    double ms = 0;
  };
  const Held& longest() const { return longest_; }
  const Held& last() const { return last_; }

 private:
  void judge(int64_t took);

  OnSlow on_slow_;
  CpuClock cpu_;
  std::string name_;
  int64_t elsewhere_ = 0;
  Held last_, longest_;
};

// Returns a hook that calls `then` at most once an hour for each name.
ReactorWatch::OnSlow once_an_hour(std::function<SteadyMs()> now, ReactorWatch::OnSlow then);
void warn_of_slow(const std::string& name, DurationMs took);

class Reactor {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;  // 0 is never a timer

  virtual ~Reactor() = default;
  // Wall clock, for recorded and shown times; may be set forward and back at any time.
  virtual TimeMs now() const = 0;
  virtual SteadyMs steady() const = 0;  // monotonic, for measured times; far above SteadyMs{} ("never")
  // Runs `task` on the reactor's thread. The only member that may be called from other threads.
  virtual void post(Task task) = 0;
  // Runs `task` once, `delay` ms from now. Cancelling a timer that fired is harmless.
  virtual TimerId after(DurationMs delay, Task task) = 0;
  virtual void cancel(TimerId timer) = 0;
  // Names the running task until it ends: "GET /v1/status". Use few names, not one per node: a task that
  // takes too long is reported by name (ReactorWatch), each name at most once an hour.
  virtual void label(std::string_view) {}
};

// The production reactor: the machine's clocks, epoll. run() returns after stop(), and may be called again.
class RealReactor : public Reactor {
 public:
  virtual void run() = 0;
  virtual void stop() = 0;  // from any thread or a signal handler's thread
  // Runs `work` in a bounded pool of threads (for blocking drivers), then `done` on the reactor's thread,
  // also when `work` threw.
  virtual void offload(Task work, Task done) = 0;
  // Calls `on_signal` on the reactor's thread when SIGINT or SIGTERM arrives.
  virtual void on_stop_signal(Task on_signal) = 0;
  // Calls `on_ready` once, on the reactor's thread, when the pipe or socket `fd` can be read or written
  // without blocking, or is at its end. At most one call of each kind is pending. The caller owns `fd`.
  enum class Ready { read, write };
  virtual void when_ready(int fd, Ready what, Task on_ready) = 0;
  // Drops the pending calls for `fd`; must be called before `fd` is closed.
  virtual void forget(int fd) = 0;
  // Sets a function to be called, instead of the warning, after a task that took longer than kLongestTask. To
  // be called on the reactor's thread, or before run().
  virtual void on_slow(ReactorWatch::OnSlow) {}
};
// `cpu`: the clock that measures tasks; tests pass their own.
std::unique_ptr<RealReactor> make_reactor(int worker_threads, ReactorWatch::CpuClock cpu = thread_cpu_time);

}  // namespace muster
