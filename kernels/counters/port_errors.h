// Error counters of network and RDMA ports, by base/counter_table.h: which ports count, and what theirs did
// between two readings. Thread safety: stateless functions.
#pragma once

#include "kernels/common/kernels.h"
#include "kernels/counters/lossless.h"
#include "kernels/counters/moved.h"

namespace muster::kernels {

// The counters of every port by PortCounter::file, and under "linked" which ports have a link. `query`: empty
// if no port's driver is to be queried.
void read_port_errors(const Files& files, const QueryStatistics& query, Counts& out);

// Adds what rose since `before`. Ports without a link at both readings do not count, nor network ports behind
// USB (a BMC's); of RDMA ports those count that are rails (rail_ports(), kernels/rdma/rdma.h).
//   network_errors, link_down    over all network ports
//   rdma_...                     of the worst RDMA port, per hour, also those of lossless.h; a metric none of
// whose counters any port has is in `moved.absent`, and "RDMA ports" if no port
//                                counts
//   detail.counted               {PART: {COUNTER: by how much}}, RDMA counters as the driver spells them
//   detail.at_least              {METRIC: why the value may be too low}
struct SinceSaved {
  const Counts& before;
  double hours = 0;
};
void add_port_errors(const Files& files, const QueryStatistics& query, const SinceSaved& since,
                     Measurement& out, Moved& moved);

}  // namespace muster::kernels
