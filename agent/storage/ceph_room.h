// Whether Ceph can drain OSDs onto the others: it moves nothing onto an OSD that is fuller than its
// backfillfull ratio (0.90 unless set), so a move that needs more never ends.
//
// An estimate by Ceph's own rules of placement: data is placed by weight, and no host has two copies of the
// same. If in doubt, the answer is no. Sizes are in KiB, as in `ceph osd df`. Thread: pure.
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

// "" if they fit; else which OSD would be how full. `dump` and `df`: output of `ceph osd dump` and `ceph osd
// df`.
std::string ceph_lacks_room(const Json& dump, const Json& df, const CephMove& move);

}  // namespace muster::steps
