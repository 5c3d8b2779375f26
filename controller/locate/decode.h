// Locates faulty parts: those that explain the failed probes, and only those with independent evidence.
//
// A probe is one test and the parts it went through: the two ends of a link, or more. A passed probe is
// evidence for all of its parts, a failed one means that at least one is bad. A part is convicted if
// - two failed probes have nothing in common but this part, and
// - every other part on them is a credible witness: it passed without this part, and its other failures are
//   explained by parts already convicted.
// So a good part that met two bad ones is not convicted: those two are not witnesses. A conviction explains
// failures, which can make witnesses of others; this is repeated until nothing changes.
//
// Where every good part met every bad one (all pairs, two bad nodes) there is no such witness. Then, and only
// against a part that failed in three of four probes, a witness may have unexplained failures too, but not
// more than passes.
//
// Parts on exactly the same probes cannot be separated: none of them is convicted. Thread: a pure function of
// its arguments.
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
Decoded decode(size_t parts, const std::vector<Probe>& probes);

}  // namespace muster::locate
