// The subcommands of muster-accept for loads on several nodes: their options, and their execution.
//
//     muster-accept group-serve --bind 10.0.0.2 --peers 10.0.0.1 --seconds 600
//     muster-accept group --members node1=10.0.0.1,node2=10.0.0.2 --self node1 --load allreduce --seconds 30
//     muster-accept group ... --bye                     stops the servers
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "base/ports.h"
#include "kernels/together/group_leader.h"
#include "kernels/together/group_server.h"

namespace muster::together {

struct GroupArguments {
  LeadOptions lead = {};
  ServeOptions serve = {};
  std::vector<std::string> members = {};  // NAME=ADDRESS
  uint16_t port = kGroupPort;
  bool bye = false;
};

void declare_group(Verb& app, GroupArguments& arguments);
// Runs the subcommand `verb`; returns nothing if it is not one of these.
std::optional<kernels::Measurement> run_group(const std::string& verb, GroupArguments& arguments);

}  // namespace muster::together
