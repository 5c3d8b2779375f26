// Starts a load on a group of nodes and combines the reports of its members: `muster-accept group`.
//
// Connects to the server of each member (kernels/together/group_server.h), sends it its rank, runs its own
// rank if this node is a member, and returns one measurement: that of rank 0. If the load did not start or
// was aborted, the measurement names the members that caused it: those that failed as seen from this node (no
// connection, connection closed, no result in time), else those that the members agreed on.
// Every wait is bounded: connect_seconds, then deadline_seconds for the load.
// Single-threaded: the process must not have other threads, since it forks.
#pragma once

#include <string>
#include <vector>

#include "kernels/common/kernels.h"
#include "kernels/together/message.h"

namespace muster::together {

struct LeadOptions {
  Work work = {};         // rank and token are set by lead_group()
  std::string self = {};  // name of this node; it need not be a member
  std::string bind = {};  // numeric address to connect from; empty: that of the member `self`
  double connect_seconds = 60;
  GpuHere here = {};
};

// Metrics: those of the load (kernels/together/loads.h), including `ranks`. `failed` if members did not take
// part, with their names in blame and detail.lost [{rank, name, how, why}]; `unavailable` if this node cannot
// lead (its own port is in use, an address is invalid).
kernels::Measurement lead_group(const LeadOptions& options);

// Stops the servers of all members except this node; those that do not respond have already ended.
// detail.ended: names of the members whose servers were stopped.
kernels::Measurement dismiss_group(const LeadOptions& options);

}  // namespace muster::together
