// AtMost: begins pieces of work in their order, at most so many at once.
//
// For work that ends later, by a callback: what ends one calls ended(), and the next begins inside of that
// call. Thread: one.
#pragma once

#include <deque>
#include <functional>
#include <utility>

namespace muster {

class AtMost {
 public:
  explicit AtMost(int most) : most_(most) {}

  // `begin` returns false if it did nothing, so that no end of it follows.
  void add(std::function<bool()> begin) {
    waiting_.push_back(std::move(begin));
    go_on();
  }
  void ended() {
    --under_way_;
    go_on();
  }
  // What has not begun does not begin any more.
  void drop() { waiting_.clear(); }

 private:
  void go_on() {
    while (under_way_ < most_ && !waiting_.empty()) {
      const auto begin = std::move(waiting_.front());
      waiting_.pop_front();
      under_way_ += begin() ? 1 : 0;
    }
  }

  const int most_;
  int under_way_ = 0;
  std::deque<std::function<bool()>> waiting_ = {};
};

}  // namespace muster
