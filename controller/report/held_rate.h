// The rate that a port or a PCI Express link is held to: the highest that it, its siblings and like nodes are
// known for. Pure functions, no I/O.
#pragma once

#include <string>

#include "controller/report/report.h"

namespace muster {

struct HeldRate {
  double value = 0;
  std::string because = {}, source = {};
  void raise(double to, const std::string& why, const std::string& from) {
    if (to > value) value = to, because = why, source = from;
  }
};

// Makes the check a pass that is held to this rate.
void pass_held_to(const HeldRate& held, const std::string& unit, Check& check);
// The check as not judged, for lack of a figure of `of`.
Check unjudged(Check check, const std::string& why, const std::string& of);

}  // namespace muster
