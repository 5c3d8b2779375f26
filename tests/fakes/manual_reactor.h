// ManualReactor: a Reactor whose clock stands still until the test moves it. Thread: the test's.
#pragma once

#include <map>
#include <utility>

#include "base/reactor.h"

namespace muster {

class ManualReactor : public Reactor {
 public:
  TimeMs now() const override { return now_; }
  void post(Task task) override { after(0, std::move(task)); }
  TimerId after(DurationMs delay, Task task) override {
    timers_.emplace(std::pair{now_ + delay, ++last_}, std::move(task));
    return last_;
  }
  void cancel(TimerId timer) override {
    for (auto it = timers_.begin(); it != timers_.end(); ++it)
      if (it->first.second == timer) {
        timers_.erase(it);
        return;
      }
  }
  // Runs everything that is due within `span`, in order of time, then of creation.
  void advance(DurationMs span) {
    const TimeMs end = now_ + span;
    while (!timers_.empty() && timers_.begin()->first.first <= end) {
      auto node = timers_.extract(timers_.begin());
      now_ = node.key().first;
      node.mapped()();
    }
    now_ = end;
  }
  bool idle() const { return timers_.empty(); }

 private:
  TimeMs now_ = 1'700'000'000'000;
  TimerId last_ = 0;
  std::map<std::pair<TimeMs, TimerId>, Task> timers_;
};

}  // namespace muster
