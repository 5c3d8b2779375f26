// A Reactor whose clocks only move when a test advances them: for unit tests and, seeded, for tests/sim.
// Timers and steady() are one clock; the wall clock goes along with it, and set_clock() sets it forth or back
// as NTP or an operator does. Tasks run in order of their time, then of their making. Thread: one.
#pragma once

#include <limits>
#include <map>
#include <utility>

#include "sys/reactor.h"

namespace muster {

class ManualReactor : public Reactor {
 public:
  explicit ManualReactor(TimeMs start = 1'700'000'000'000) : wall_(start - kSteadyBegin) {}

  TimeMs now() const override { return wall_ + now_; }
  SteadyMs steady() const override { return {now_}; }
  void set_clock(DurationMs step) { wall_ += step; }
  void post(Task task) override { after(0, std::move(task)); }
  TimerId after(DurationMs delay, Task task) override {
    const TimerId id = ++last_;
    tasks_.emplace(std::pair{now_ + (delay > 0 ? delay : 0), id}, std::move(task));
    due_[id] = now_ + (delay > 0 ? delay : 0);
    return id;
  }
  void cancel(TimerId timer) override {
    const auto it = due_.find(timer);
    if (it == due_.end()) return;
    tasks_.erase({it->second, timer});
    due_.erase(it);
  }

  bool idle() const { return tasks_.empty(); }
  // Runs the next task if it is due at `end` or earlier. False: nothing left before `end`.
  bool step(int64_t end = std::numeric_limits<int64_t>::max()) {
    if (tasks_.empty() || tasks_.begin()->first.first > end) return false;
    auto node = tasks_.extract(tasks_.begin());
    now_ = node.key().first;
    due_.erase(node.key().second);
    ++steps_;
    node.mapped()();
    return true;
  }
  // Everything that is due within the next `span`.
  void advance(DurationMs span) {
    const int64_t end = now_ + span;
    while (step(end)) {
    }
    now_ = end;
  }
  uint64_t steps() const { return steps_; }

 private:
  static constexpr int64_t kSteadyBegin = 1'000'000'000'000;
  int64_t now_ = kSteadyBegin;  // steady
  DurationMs wall_;             // what the wall clock is ahead of it
  TimerId last_ = 0;
  uint64_t steps_ = 0;
  std::map<std::pair<int64_t, TimerId>, Task> tasks_;
  std::map<TimerId, int64_t> due_;
};

}  // namespace muster
