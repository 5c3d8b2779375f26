// A group over TCP: its members meet at fixed addresses, prove that they belong to the same run, and connect
// to each other in pairs, the higher rank to the lower.
//
// Reductions: recursive doubling for few bytes (log2 n steps), a ring for many (each member sends 2 (n - 1) /
// n of them). Each sum is made in one order for all members, so all have the same bits.
// What it measures: the network of these addresses and the processors at its ends, not an RDMA fabric.
// The token is not sent, but an eavesdropper can replay what is sent: it keeps runs and unrelated programs
// apart, and does not protect against an attacker in the network.
// Thread: one (kernels/together/group.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/together/group.h"
#include "kernels/together/mesh.h"
#include "kernels/together/socket.h"

namespace muster::together {

struct Meeting {
  std::vector<Member> members = {};  // the same list on each, by rank
  int rank = 0;
  std::string token = {};  // of this run
  double seconds = 60;     // until all are there, and of each call until within() says otherwise
  double grace = 5;        // seconds to wait for other members' statements when one is lost
};

struct Met {
  std::unique_ptr<Group> group = {};  // null: it was not formed
  Error error = {};
  std::vector<Lost> lost = {};  // who is the reason, as Group::lost()
};

// Waits until every member is connected to every other. `listening`: at this member's own address, from
// before it was started, or from listen_at(); closed when all have come. Members that are not there yet are
// retried until the time is up.
Met meet(const Meeting& meeting, Listening listening);

// What meet() makes when all connections stand. Calls end within this many seconds.
std::unique_ptr<Group> group_over(std::unique_ptr<Mesh> mesh, double seconds);

}  // namespace muster::together
