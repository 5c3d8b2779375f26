// The lab's network: one namespace with a bridge per network; a tap per machine and port, a /32 per BMC,
// nothing else.
//
// The controller and the BMCs have their addresses on the provisioning network's bridge; on the others
// (storage, rails) there are machines only, with an MTU of 9000.
// Guests are isolated: the namespace has no link to the host. Packages go through a Unix socket
// (lab/apt_proxy.h). The command lists are pure; run_all() runs them. A namespace is ours only if its inode
// is the one recorded at its creation. Thread: free functions without shared state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "base/os.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"

namespace muster::lab {

using Argv = std::vector<std::string>;

struct Namespace {
  std::string name;
  uint64_t inode = 0;
};

std::string namespace_name(const LabSpec& spec);  // "muster-<cluster>"
std::vector<Argv> bridge_commands(const LabSpec& spec, const std::string& space);
// Run with `space` empty from inside the namespace.
std::vector<Argv> node_commands(const LabNode& node, const std::string& space);
std::vector<Argv> node_removal_commands(const LabNode& node, const std::string& space);
// The tap of a port exists as long as the lab does, whether its machine is on or not.
Argv link_command(const std::string& tap, bool up);
// `rate` as tc spells it ("10mbit"); empty: no limit. Towards the node only: the host kernel may lack netem
// and police.
Argv shape_command(const std::string& tap, const std::string& rate);
Argv mtu_command(const std::string& tap, int bytes);

Status run_all(Process& process, const std::vector<Argv>& commands);

// Held while a lab comes up, so that its namespace, empty as long as nothing runs in it yet, is not mistaken
// for a dead lab's. Freed with the object or the process.
Result<LockFile> claim_namespace(const std::string& name);  // Code::conflict while another process holds it

// Makes the namespace and records it in DIR. One of that name that is a dead lab's (a lab's bridge in it and
// no process) is replaced; Code::conflict when it is anything else. Needs the claim.
Result<Namespace> create_namespace(Process& process, const LabDir& dir, const std::string& name);
// The record in DIR, and whether it still exists with that inode.
Result<Namespace> recorded_namespace(const LabDir& dir);
bool namespace_exists(const Namespace& space);
Status delete_namespace(Process& process, const Namespace& space);

}  // namespace muster::lab
