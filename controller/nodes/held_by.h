// What keeps a quarantined node out of runs. Thread safety: plain value types.
#pragma once

#include <string_view>

namespace muster {

enum class HeldBy {
  nobody,      // it is not quarantined
  run,         // a run found a fault: the next plan includes the node again
  an_operator  // an operator works on it: no run touches it until it is released
};

// "", "run", "operator".
std::string_view to_string(HeldBy held);
// An unknown word counts as `an_operator`: if in doubt, the node is not touched.
HeldBy held_by_from_string(std::string_view word);

}  // namespace muster
