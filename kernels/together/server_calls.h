// The leader's connections to its members' servers: opened in parallel, each retried until the server has
// sent its greeting or the time is up. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/together/line_socket.h"
#include "kernels/together/mesh.h"

namespace muster::together {

// The connection to one member's server.
struct ServerCall {
  int rank = 0;
  std::unique_ptr<LineSocket> line = {};  // null: no connection
  bool greeted = false;
  Loss loss = Loss::absent;  // if it sent no greeting
  std::string why = {};      // "connection refused"
};

// Connects to the server of each of these ranks. Returns once all have sent their greeting, after this many
// seconds, or when this process's parent has ended.
std::vector<ServerCall> call_servers(const std::vector<Member>& members, const std::vector<int>& ranks,
                                     const std::string& from, double seconds);

}  // namespace muster::together
