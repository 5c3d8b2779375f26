// Fresh: a value that takes long to make, and is made again when it is needed and older than a limit. Its age
// is measured by a clock that is not set. Thread: the reactor's.
#pragma once

#include <utility>

#include "sys/reactor.h"

namespace muster {

template <typename T>
class Fresh {
 public:
  // The reactor must outlive it.
  Fresh(const Reactor& reactor, DurationMs limit) : reactor_(reactor), limit_(limit) {}

  // `make` is called with the value before, T() at first.
  template <typename Make>
  const T& get(Make&& make) {
    const SteadyMs now = reactor_.steady();
    if (!made_ || now - made_ >= limit_) {
      value_ = std::forward<Make>(make)(std::as_const(value_));
      made_ = now;
    }
    return value_;
  }
  // The next get() makes it again.
  void expire() { made_ = {}; }

 private:
  const Reactor& reactor_;
  const DurationMs limit_;
  SteadyMs made_;
  T value_ = {};
};

}  // namespace muster
