// Locates faulty parts: those that explain the failed probes and for which there is independent evidence.
//
// A probe is one test and the parts that it uses: the two ends of a link, or more. A passed probe is evidence
// for all of its parts; a failed one means that at least one of them is bad. A part is convicted if
// - two failed probes have nothing in common but this part, and
// - every other part on them is a credible witness: it passed without this part, and its other failures are
//   explained by parts already convicted.
// So a good part that was tested with two bad ones is not convicted: those two are not credible. Each
// conviction explains failures, which can make other parts credible; this repeats until nothing changes.
//
// If every good part was tested with every bad one (all pairs, two bad nodes), no witness is credible. Only
// then, and only against a part that failed in three of four probes, may a witness have unexplained failures,
// but no more than it has passes.
//
// Parts that are on exactly the same probes cannot be separated: none of them is convicted. Thread safety:
// stateless functions.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::locate {

using Part = int;  // 0 ... parts - 1

struct Probe {
  std::vector<Part> path = {};  // without repeats
  bool failed = false;
};

struct LocatedFault {
  Part part = 0;
  std::vector<size_t> against = {};  // the credible failed probes
};

struct Decoded {
  std::vector<LocatedFault> faulty = {};  // in the order found: strongest evidence first
  std::vector<size_t> unexplained = {};   // failed probes without a convicted part
};
Decoded decode(size_t parts, const std::vector<Probe>& probes);

}  // namespace muster::locate
