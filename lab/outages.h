// Outages: which taps drop all traffic, for what reason and until when.
//
// A tap can be down for several reasons (its own cut, the switch's outage) and comes back when the last is
// over. Pure: the caller passes the time and carries out the result. Thread: none of its own.
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
  // Returns the taps to take down. For an existing reason the new end counts.
  Taps begin(const std::string& reason, const Taps& taps, SteadyMs until);
  // A further tap for an existing reason; false: no such reason.
  bool join(const std::string& reason, const std::string& tap);
  // Returns the taps to bring up.
  Taps end(const std::string& reason);
  // Reasons whose time is over; end() each.
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
