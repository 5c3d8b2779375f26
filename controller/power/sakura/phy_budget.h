// PhyBudget: how many requests an account of the provider may still send, over restarts of the controller,
// too.
//
// A bucket of kBurst that fills at kPerMinute: fewer than 300 in any hour. The last kForOrders are reserved
// for orders. The remainder is written to the file `name` before a request goes out, and so is the provider's
// refusal (429), so a controller that restarts repeatedly sends no more than one that does not. No file means
// an account that was never used here. If it cannot be read, the past is unknown: then only the orders' share
// is available, and reads wait. Otherwise only a wrong clock can falsify it: one set back fills nothing, one
// set ahead at most the bucket. Thread: one at a time; blocking, for the time of a small file.
#pragma once

#include <functional>
#include <string>

#include "base/time.h"

namespace muster {

class PhyBudget {
 public:
  static constexpr int kBurst = 60, kPerMinute = 4, kForOrders = 20;
  static constexpr DurationMs kLongestBlock = 2 * 60 * kMinute;

  struct Options {
    std::string folder, name;        // folder "": not kept
    std::function<TimeMs()> now;     // monotonic
    std::function<TimeMs()> of_day;  // the same after a restart
  };
  explicit PhyBudget(Options options);

  // 0: one was taken. Else the time until there is one for this.
  DurationMs take(bool for_order);
  // The provider accepts none for this time; see blocked().
  void block(DurationMs span);
  DurationMs blocked() const;

 private:
  void fill();
  void load();
  void keep();

  const Options options_;
  double left_ = kBurst;
  TimeMs filled_ = 0, blocked_until_ = 0;
  bool complained_ = false;  // that it cannot be written
};

}  // namespace muster
