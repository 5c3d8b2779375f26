// The leader's connections to the servers of its members: opened all at once, each retried until a server has
// greeted or the time is up. Owned by a leader. Thread: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/together/line_socket.h"
#include "kernels/together/mesh.h"

namespace muster::together {

// To one member's server.
struct ServerCall {
  int rank = 0;
  std::unique_ptr<LineSocket> line = {};  // null: there is no connection
  bool greeted = false;
  Loss loss = Loss::absent;  // where it never greeted
  std::string why = {};      // "connection refused"
};

// One for each of these ranks. Returns when all have greeted, or after this many seconds. Ends early when
// this process's parent has ended.
std::vector<ServerCall> call_servers(const std::vector<Member>& members, const std::vector<int>& ranks,
                                     const std::string& from, double seconds);

}  // namespace muster::together
