// PhyBudget: how many requests an account of the provider may still send; the count survives restarts of the
// controller.
//
// A token bucket of kBurst requests, refilled at kPerMinute: fewer than 300 in any hour. The last kForOrders
// are reserved for orders. The remainder is written to the file `name` before a request is sent, and so is
// the provider's refusal (429), so that repeated restarts of the controller do not lead to more requests. No
// file means that this controller never used the account. If the file cannot be read, past use is unknown:
// then only the share for orders is available, and reads wait. A clock set back refills nothing; one set
// ahead refills at most the bucket. Thread: one at a time; blocks while a small file is written.
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
    std::function<TimeMs()> of_day;  // wall clock, comparable across restarts
  };
  explicit PhyBudget(Options options);

  // Takes one request and returns 0; or returns the time until one is available for this purpose.
  DurationMs take(bool for_order);
  // Records that the provider accepts no requests for this time; see blocked().
  void block(DurationMs span);
  DurationMs blocked() const;

 private:
  void fill();
  void load();
  void keep();

  const Options options_;
  double left_ = kBurst;
  TimeMs filled_ = 0, blocked_until_ = 0;
  bool complained_ = false;  // logged that the file cannot be written
};

}  // namespace muster
