// What the leader of a group and the servers on the other nodes send each other: one JSON object a line.
//
// server -> leader, when it accepts:  {"muster_group": 1}
// leader -> server:                   {"work": {token, rank, members, load, ...}}    or {"bye": true}
// server -> leader, when it is done:  {"result": Measurement} or {"error": "why", "how": Loss}
//
// Both read what the other one sends as they read anything from the network: bounded, each field by its type.
// The paths of programs and libraries are not part of it: each node has its own.
// Thread: values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/together/loads.h"
#include "kernels/together/mesh.h"

namespace muster::together {

constexpr int kMessageVersion = 1;
constexpr size_t kLongestWork = 4 << 20;     // bytes: the addresses of some 10,000 members
constexpr size_t kLongestResult = 16 << 20;  // bytes

// One rank's part of a load.
struct Work {
  std::string token = {};  // of this run: members prove it to each other
  int rank = 0;
  std::vector<Member> members = {};  // by rank; the same on each
  std::string load = "allreduce";    // allreduce, training, nccl, gpu-training
  LoadOptions options = {};          // without what is of a node: its folders and programs
  uint16_t nccl_port = 7541;         // of the first member
  double meet_seconds = 30;          // until all members are there
  double deadline_seconds = 180;     // in total; a rank that is not done then is ended
};
Json to_json(const Work& work);
// invalid: which field is wrong. What it returns is valid: a rank that exists, a load that is known.
Result<Work> work_from_json(const Json& json);

// A line as it is sent.
std::string line_of(const Json& json);

}  // namespace muster::together
