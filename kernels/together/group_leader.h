// Starts a load over a group from one node and puts together what its members report: `muster-accept group`.
//
// Contacts the server of each member (kernels/together/group_server.h), hands it its rank, carries out its
// own rank where this node is a member, and returns one measurement: that of rank 0. Where the load did not
// start or broke off, it names the members that are the reason: by what this node saw itself (no connection,
// a connection that closed, no result in time), else by what the members agreed on.
// Each wait has an end: connect_seconds, then deadline_seconds for the load.
// Thread: one, in a process that has no other.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/together/message.h"

namespace muster::together {

struct LeadOptions {
  Work work = {};         // its rank and token are filled in
  std::string self = {};  // name of this node; it need not be a member
  std::string bind = {};  // numeric address to connect from; empty: that of the member `self`
  double connect_seconds = 60;
  GpuHere here = {};
};

// Metrics as those of the load (kernels/together/loads.h), `ranks` among them. `failed`, with the names in
// blame and detail.lost [{rank, name, how, why}], where members did not take part; `unavailable` where this
// node cannot lead (its own port is taken, an address is invalid).
kernels::Measurement lead_group(const LeadOptions& options);

// Ends the servers of all members but this node; those that do not answer have already ended. detail.ended:
// names.
kernels::Measurement dismiss_group(const LeadOptions& options);

}  // namespace muster::together
