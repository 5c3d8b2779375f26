// Who is guilty: the parts that explain the failed probes, and only those that other parts testify against.
//
// A probe is one test and the parts it went through: two NICs, or a NIC, cables, switch ports and another
// NIC. A passed probe speaks for all of its parts, a failed one says that at least one is bad. A part is
// convicted when
// - two failed probes have nothing in common but this part, and
// - every other part on them is a credible witness: it passed without this part, and what else it failed is
//   explained by parts already convicted.
// So a good part that met two bad ones is not blamed: those two are no witnesses. A conviction explains
// failures, which can make witnesses of others; this is repeated until nothing changes.
//
// Where every good part met every bad one (all pairs, two bad nodes) there is no such witness. Then, and only
// against a part that failed in three of four probes, a witness may have unexplained failures too, but not
// more than passes.
//
// A part may lie within others: an uplink in its switch. What lies within the accused need not testify, since
// the accused explains its failures; what the accused lies within may be on both probes, but must testify. A
// part that holds others is convicted only when seven of eight of its probes failed: two bad uplinks are no
// bad switch.
//
// Parts on exactly the same probes cannot be told apart: put them into one class first (distinguishable()).
// Thread: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::locate {

using Part = int;  // 0 ... parts - 1

struct Probe {
  std::vector<Part> path = {};  // without repeats
  bool failed = false;
};

struct Conviction {
  Part part = 0;
  std::vector<size_t> against = {};  // the credible failed probes
};

struct Decoded {
  std::vector<Conviction> guilty = {};   // in the order found: strongest evidence first
  std::vector<size_t> unexplained = {};  // failed probes without a convicted part
};
// `within[part]`: the parts that hold it, all of them; empty: none lies within another.
Decoded decode(size_t parts, const std::vector<Probe>& probes,
               const std::vector<std::vector<Part>>& within = {});

// For each part the number of its class; parts of one class are on exactly the same paths. Classes are
// numbered by their first part; a part on no path is alone in its class, since nothing is known of it.
std::vector<int> distinguishable(size_t parts, const std::vector<std::vector<Part>>& paths);

}  // namespace muster::locate
