// Estimates whether Ceph can drain OSDs onto the others: it moves no data onto an OSD that is fuller than its
// backfillfull ratio (0.90 by default), so a move that needs more space never ends.
//
// The estimate follows Ceph's placement rules: data is placed by weight, and no host has two replicas of the
// same data. If in doubt, the answer is no. Sizes are in KiB, as in `ceph osd df`. Pure functions, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/storage/ceph.h"
#include "base/json.h"

namespace muster::steps {

struct CephMove {
  std::vector<CephOsd> leaving, staying;
  int64_t copies = 2;
};

// Returns "" if the data fits; else the reason, such as an OSD that would be too full. `dump`, `df`: output
// of `ceph osd dump` and `ceph osd df`.
std::string ceph_lacks_room(const Json& dump, const Json& df, const CephMove& move);

}  // namespace muster::steps
