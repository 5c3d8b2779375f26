// The protocol between a group's leader and the servers on the other nodes: one JSON object per line.
//
// server -> leader, on connection:    {"muster_group": 1}
// leader -> server:                   {"work": {token, rank, members, load, ...}}    or {"bye": true}
// server -> leader, when it is done:  {"result": Measurement} or {"error": "why", "how": Loss}
//
// Both sides treat received messages as untrusted: bounded length, every field checked for its type.
// Paths of programs and libraries are not transmitted: each node uses its own.
// Thread safety: value types and stateless functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/ports.h"
#include "base/result.h"
#include "kernels/together/loads.h"
#include "kernels/together/mesh.h"

namespace muster::together {

constexpr int kMessageVersion = 1;
constexpr size_t kLongestWork = 4 << 20;     // bytes; enough for the addresses of some 10,000 members
constexpr size_t kLongestResult = 16 << 20;  // bytes

// One rank's part of a load.
struct Work {
  std::string token = {};  // identifies this run: members prove to each other that they have it
  int rank = 0;
  std::vector<Member> members = {};  // by rank; the same list for every member
  std::string load = "allreduce";    // allreduce, training, nccl, gpu-training
  LoadOptions options = {};          // without node-specific folders and programs
  uint16_t nccl_port = kNcclPort;    // on the first member
  double meet_seconds = 30;          // how long to wait until all members are connected
  double deadline_seconds = 180;     // in total; a rank that is not done by then is killed
};
Json to_json(const Work& work);
// Parses and validates received work (rank exists, load is known). invalid: names the wrong field.
Result<Work> work_from_json(const Json& json);

// Returns the line to send, with its line feed.
std::string line_of(const Json& json);

}  // namespace muster::together
