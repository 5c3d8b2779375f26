// One acceptance of three recorded machines of a type, from their files to the report: facts, the spec that
// `muster accept --hosts` generates, the plan of the profile `standard`, the agents' steps, the judge.
//
// What the report says becomes statements, one line each; "all: " stands for all three nodes:
// all: has gpus 8        so many GPUs, ports, rails, drives, sockets, cores are in the inventory or measured
//   node02: degraded       the verdict on the node
//   node02: rdma/send_gbps fail        a check that neither passed nor is about something that is not there
//   node02: at fault: link of node02 (mlx5_3, rail 3)
//   all: no figure for gpu bf16/tflops   an expectation for which nothing could be derived
// Thread safety: one thread.
#pragma once

#include <set>
#include <string>

#include "base/json.h"

namespace muster::machines {

std::set<std::string> play(const Json& machine, bool faulty);

}  // namespace muster::machines
