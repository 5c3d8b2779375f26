// The search over all rails of a cluster at once: rail r of one node with rail r of another, all rails at the
// same time. A slow NIC is named by node and rail; a node whose rails are slow together is named once.
//
// Each rail is searched by itself (controller/locate/search.h), all under the same seed, so that without
// suspects all rails of a node meet the same partner; the verdict is made from all rails together. Thread:
// pure functions.
#pragma once

#include "controller/locate/search.h"

namespace muster::locate {

struct RailSuspect {
  int node = 0;
  std::optional<int> rail = {};  // absent: the node itself
  bool operator==(const RailSuspect&) const = default;
};
struct RailProgress {
  std::vector<Round> next = {};  // by rail; all empty: finished
  bool finished = true;
  std::vector<RailSuspect> guilty = {};
  size_t undecided = 0;  // pairs, over all rails
};
// `tested` by rail; options.ends is the number of nodes.
RailProgress proceed_rails(const SearchOptions& options, const std::vector<std::vector<Tested>>& tested);

}  // namespace muster::locate
