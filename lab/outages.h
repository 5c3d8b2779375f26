// Outages: which taps drop all traffic, for what reason and until when. A tap with several reasons (its own
// cut, the switch's outage) comes back up when the last one is over. No I/O and no clock: the caller passes
// the time and applies the result. Used by one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/steady.h"

namespace muster::lab {

class Outages {
 public:
  using Taps = std::vector<std::string>;
  // Returns the taps to take down. For an existing reason, `until` replaces the previous end.
  Taps begin(const std::string& reason, const Taps& taps, SteadyMs until);
  // Adds a tap to an existing reason; false: no such reason.
  bool join(const std::string& reason, const std::string& tap);
  // Returns the taps to bring up.
  Taps end(const std::string& reason);
  // Returns the reasons whose time is over; the caller must end() each.
  std::vector<std::string> due(SteadyMs now) const;
  std::optional<SteadyMs> until(const std::string& reason) const;

 private:
  struct Outage {
    std::set<std::string> taps;
    SteadyMs until;
  };
  bool down(const std::string& tap) const;

  std::map<std::string, Outage> outages_;  // by reason
};

}  // namespace muster::lab
