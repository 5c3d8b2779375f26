// PhyBudget: how many requests an account of the provider's may still send from here, over restarts of the
// controller, too.
//
// A bucket of kBurst that fills at kPerMinute: fewer than 300 in any hour. The last kForOrders are not given
// out for looks. What is left is in the file `name` before a request goes out, with the provider's own
// refusal to take any (429), so a controller that restarts again and again sends no more than one that does
// not. A file that is not there is that of an account that was never used from here. Of one that cannot be
// read nobody knows what was sent: then there is the orders' share, and looks wait. Beside the file only a
// wrong clock could deceive it: one that went back fills nothing, one that went ahead at most the bucket.
// Thread: one at a time; blocking, for the time of a small file.
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
    std::string folder, name;        // folder "": kept nowhere
    std::function<TimeMs()> now;     // monotonic
    std::function<TimeMs()> of_day;  // the same for whoever comes after a restart
  };
  explicit PhyBudget(Options options);

  // 0: one was taken. Else so long it takes until there is one for this.
  DurationMs take(bool for_order);
  // The provider takes none for so long; see blocked().
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
