// Reactor: the only notion of time and of "later" in muster's logic (levels 1 to 3).
//
// One thread owns a reactor and everything that is posted to it; callbacks never run inside post() or
// after(). Production: base/reactor_asio.cc. Simulation: tests/sim/world.h, under a seeded clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/reactor_watch.h"
#include "base/steady.h"
#include "base/time.h"

namespace muster {

class Reactor {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;  // 0 is never a timer

  virtual ~Reactor() = default;
  // Wall clock, for recorded and shown times; may be set forward and back at any time.
  virtual TimeMs now() const = 0;
  virtual SteadyMs steady() const = 0;  // for measured times: monotonic, years away from SteadyMs{}
  // Runs `task` on the reactor's thread. The only member that may be called from other threads.
  virtual void post(Task task) = 0;
  // Runs `task` once, `delay` ms from now. Cancelling a timer that fired is harmless.
  virtual TimerId after(DurationMs delay, Task task) = 0;
  virtual void cancel(TimerId timer) = 0;
  // The name of the running task until it ends: "GET /v1/status". Few names, not one for each node: a task
  // that takes too long is reported by its name (base/reactor_watch.h), each name once in an hour.
  virtual void label(std::string_view) {}
};

// The real one: the clocks of the machine, epoll. run() returns after stop(), and may be called again.
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
  // without waiting, or is at its end. One call of each kind is pending at a time. The descriptor stays its
  // owner's.
  enum class Ready { read, write };
  virtual void when_ready(int fd, Ready what, Task on_ready) = 0;
  // Drops the calls pending for `fd`; to be called before it is closed.
  virtual void forget(int fd) = 0;
  // Called after a task that took longer than kLongestTask, in place of the warning. On the reactor's thread,
  // or before run().
  virtual void on_slow(ReactorWatch::OnSlow) {}
};
// `cpu`: the clock for tasks; tests have their own.
std::unique_ptr<RealReactor> make_reactor(int worker_threads, ReactorWatch::CpuClock cpu = thread_cpu_time);

}  // namespace muster
