// A group over TCP: its members meet at fixed addresses, prove that they belong to the same run, and connect
// to each other in pairs, the higher rank to the lower.
//
// Reductions: recursive doubling for few bytes (log2 n steps), a ring for many (each member sends 2 (n - 1) /
// n of them). Every sum is computed in the same order for all members, so all get the same bits.
// It measures the network of these addresses and the processors at its ends, not an RDMA fabric.
// The token itself is not sent, but an eavesdropper can replay the handshake: it separates runs and rejects
// unrelated programs, and does not protect against an attacker in the network.
// Used by one thread (kernels/together/group.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/together/group.h"
#include "kernels/together/mesh.h"
#include "kernels/together/socket.h"

namespace muster::together {

struct Meeting {
  std::vector<Member> members = {};  // by rank; the same list on every member
  int rank = 0;
  std::string token = {};  // identifies this run
  double seconds = 60;     // limit for connecting all members, and for each call until within() changes it
  double grace = 5;        // seconds to wait for other members' statements when a member is lost
};

struct Met {
  std::unique_ptr<Group> group = {};  // null: it was not formed
  Error error = {};
  std::vector<Lost> lost = {};  // the members that caused it, as in Group::lost()
};

// Waits until every member is connected to every other, and retries members that are not listening yet until
// the time is up. `listening`: socket at this member's own address, inherited or from listen_at(); closed
// once all members are connected.
Met meet(const Meeting& meeting, Listening listening);

// Returns a group over these established connections. Calls end within this many seconds.
std::unique_ptr<Group> group_over(std::unique_ptr<Mesh> mesh, double seconds);

}  // namespace muster::together
