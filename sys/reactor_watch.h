// ReactorWatch: detects tasks that block their reactor for too long. While a task runs, no request is
// answered and no message handled; work longer than kLongestTask must run on a worker thread, or in pieces.
//
// Measures CPU time of the reactor's thread, so that a busy machine or a debugger does not make a task slow.
// Thread: the reactor's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/steady.h"
#include "base/time.h"

namespace muster {

constexpr DurationMs kLongestTask = 100;

// Returns the CPU time of the calling thread, in nanoseconds.
int64_t thread_cpu_time();

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
// Logs a warning.
void warn_of_slow(const std::string& name, DurationMs took);

}  // namespace muster
