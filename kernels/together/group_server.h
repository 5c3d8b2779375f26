// Carries out ranks for a leader that runs on another node (kernels/together/group_leader.h): `muster-accept
// group-serve`.
//
// Accepts connections from the addresses of its peers only; others are closed without an answer. One rank at
// a time, each in a process of its own, which ends with the leader's connection. It never outlives: the
// leader's `bye`, the end of its time, the process that started it, or a leader that has not been there for a
// while. Thread: one, in a process that has no other.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/together/loads.h"
#include "kernels/together/socket.h"

namespace muster::together {

struct ServeOptions {
  std::string bind = {};  // numeric address; members connect to it
  uint16_t port = 7540;
  std::vector<std::string> peers = {};  // numeric addresses
  double seconds = 600;                 // ends after this time in any case
  double wait_seconds = 180;            // until a leader is there for the first time
  double linger_seconds = 90;           // after a load, until the next one or `bye`
  GpuHere here = {};
};

// `unavailable` when another program listens there; else `measured`, with how many ranks were carried out and
// why it ended (detail.loads, detail.ended: "bye", "time", "no leader", "parent").
kernels::Measurement serve_group(const ServeOptions& options);
// The same on a socket that listens already.
kernels::Measurement serve_group_at(const ServeOptions& options, const Socket& listening);

}  // namespace muster::together
