// A Reactor whose clock only moves when it is told to: for unit tests and, seeded, for tests/sim.
// Tasks run in order of their time, then of their making. Thread: one.
#pragma once

#include <limits>
#include <map>
#include <utility>

#include "base/reactor.h"

namespace muster {

class ManualReactor : public Reactor {
 public:
  explicit ManualReactor(TimeMs start = 1'700'000'000'000) : now_(start) {}

  TimeMs now() const override { return now_; }
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
  bool step(TimeMs end = std::numeric_limits<TimeMs>::max()) {
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
    const TimeMs end = now_ + span;
    while (step(end)) {}
    now_ = end;
  }
  uint64_t steps() const { return steps_; }

 private:
  TimeMs now_;
  TimerId last_ = 0;
  uint64_t steps_ = 0;
  std::map<std::pair<TimeMs, TimerId>, Task> tasks_;
  std::map<TimerId, TimeMs> due_;
};

}  // namespace muster
