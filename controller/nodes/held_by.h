// Who took a quarantined node out of the runs. Thread: values.
#pragma once

#include <string_view>

namespace muster {

enum class HeldBy {
  nobody,      // it is not quarantined
  run,         // a run found something wrong with it: the next plan tries it again
  an_operator  // somebody's hands are in it: nothing touches it until it is released
};

// "", "run", "operator".
std::string_view to_string(HeldBy held);
// A word that is none of them counts as `an_operator`: when in doubt the node is left alone.
HeldBy held_by_from_string(std::string_view word);

}  // namespace muster
