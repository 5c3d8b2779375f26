// The lab's network: one namespace with a bridge per network, a tap device per machine and port, a /32 per
// BMC, and nothing else.
//
// The controller and the BMCs have their addresses on the provisioning network's bridge; the other networks
// (storage, rails) connect machines only, with an MTU of 9000.
// Guests are isolated: the namespace has no link to the host. Packages go through a Unix socket
// (lab/apt_proxy.h). The ..._commands() functions only build command lines; run_all() runs them. A namespace
// is the lab's only if it has the inode recorded at its creation. Thread safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/lab_dir.h"
#include "lab/lab_spec.h"
#include "sys/lock_file.h"
#include "sys/os.h"

namespace muster::lab {

using Argv = std::vector<std::string>;

struct Namespace {
  std::string name;
  uint64_t inode = 0;
};

std::string namespace_name(const LabSpec& spec);  // "muster-<cluster>"
std::vector<Argv> bridge_commands(const LabSpec& spec, const std::string& space);
// `space`: the namespace to run in; empty: the caller is inside it already.
std::vector<Argv> node_commands(const LabNode& node, const std::string& space);
std::vector<Argv> node_removal_commands(const LabNode& node, const std::string& space);
// A port's tap exists as long as the lab, whether its machine is on or off.
Argv link_command(const std::string& tap, bool up);
// `rate` in tc's syntax ("10mbit"); empty: no limit. To the node only: the kernel may lack netem and police.
Argv shape_command(const std::string& tap, const std::string& rate);
Argv mtu_command(const std::string& tap, int bytes);

Status run_all(Process& process, const std::vector<Argv>& commands);

// Takes a lock that is held while a lab starts, so that its namespace, in which nothing runs yet, is not
// mistaken for that of a dead lab. Released with the object or the process.
Result<LockFile> claim_namespace(const std::string& name);  // Code::conflict while another process holds it

// Creates the namespace and records it in DIR. An existing namespace of that name is replaced if it belongs
// to a dead lab (has a lab's bridge and no process), else Code::conflict. The caller must hold the claim.
Result<Namespace> create_namespace(Process& process, const LabDir& dir, const std::string& name);
// Returns the namespace recorded in DIR. namespace_exists(): true if it still exists with that inode.
Result<Namespace> recorded_namespace(const LabDir& dir);
bool namespace_exists(const Namespace& space);
Status delete_namespace(Process& process, const Namespace& space);

// Frames longer than any jumbo frame, which every adapter rejects. An adapter with error counters drops them
// and counts them (rx_length_errors, rx_errors). Emulated adapters accept at most 16 KiB.
inline constexpr int kGiantBytes = 17000;
inline constexpr int64_t kMostGiants = 1000;

// To `mac`, with an experimental EtherType that receivers ignore. Code::invalid: not like 52:54:00:22:00:01.
Result<std::string> giant_frame(const std::string& mac);
// Sends `count` such frames to the machine on `tap`, whose MTU must be kGiantBytes meanwhile.
Status send_giants(const std::string& tap, const std::string& mac, int64_t count);

}  // namespace muster::lab
