// `muster-accept group-serve`: runs ranks of a load for a leader on another node
// (kernels/together/group_leader.h). Accepts connections only from the addresses of its peers; others are
// closed without an answer. Runs one rank at a time, in its own process, which ends with the leader's
// connection. The server ends on `bye` from the leader, at its time limit, with its parent process, or when
// no leader has connected for a while. Single-threaded, since it forks: the process must not have other
// threads.
#pragma once

#include <string>
#include <vector>

#include "base/ports.h"
#include "kernels/common/kernels.h"
#include "kernels/together/loads.h"
#include "kernels/together/socket.h"

namespace muster::together {

struct ServeOptions {
  std::string bind = {};  // numeric address; members connect to it
  uint16_t port = kGroupPort;
  std::vector<std::string> peers = {};  // numeric addresses
  double seconds = 600;                 // hard time limit
  double wait_seconds = 180;            // how long to wait for the first leader
  double linger_seconds = 90;           // after a load: how long to wait for the next one or `bye`
  GpuHere here = {};
};

// `unavailable` if another program listens on the port; else `measured`, with the number of ranks that ran
// (detail.loads) and why the server ended (detail.ended: "bye", "time", "no leader", "parent").
kernels::Measurement serve_group(const ServeOptions& options);
// On a socket that is already listening.
kernels::Measurement serve_group_at(const ServeOptions& options, const Socket& listening);

}  // namespace muster::together
