// A spec for hosts that are measured as they are (`muster accept --hosts`): generated from their list and
// their inventories, so that planner, judge and report work on them as on declared nodes.
//
// Their hardware is not declared. What most hosts of a group have is written as each one's `hardware`, so
// that a host that lost a GPU, a memory module or a link fails against its like. Fewer than three hosts have
// no majority: then nothing is declared, and only a host's own history says what is less than before. Drives
// are not declared: a disk group that finds another number of drives refuses the whole plan.
//
// Nothing of the spec is ever applied: it is planned with RequestKind::accept only. Thread: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/facts.h"
#include "base/result.h"
#include "controller/spec/spec.h"

namespace muster {

struct AcceptHost {
  std::string name;                      // as in a spec
  std::string address;                   // IPv4, at which the other hosts reach it
  std::string group;                     // as its user says; empty: hosts of its product
  const HardwareFacts* facts = nullptr;  // null: not known
  std::optional<int> rdma_ports = {};    // active ones; absent: unknown
  std::string host_key = {};             // "SHA256:..."; empty: the command that reached it has checked it
};

struct HostsSpec {
  std::string text;                // YAML; the same for the same hosts in whatever order
  Spec spec;                       // as parse_spec() reads it
  std::vector<std::string> notes;  // for people: groups that were made, and what has no majority
};

// Code::invalid with all that is wrong: no hosts, names or addresses that are wrong or given twice, addresses
// that no network of /8 to /30 holds, a cluster's name that is none.
// `vars`: what profiles may name as {{vars.NAME}}.
Result<HostsSpec> hosts_spec(const std::string& cluster, const std::string& profile,
                             const std::vector<AcceptHost>& hosts,
                             const std::map<std::string, std::string>& vars = {});

// Host -> group. Hosts whose user names no group are one of their own where all are of one product, else one
// for each product: "hosts", or "hosts-1", "hosts-2" in the order of products.
std::map<std::string, std::string> groups_of(const std::vector<AcceptHost>& hosts);

// The name of a cluster from that of a file: "lists/GPU hosts.txt" -> "gpu-hosts"; "hosts" where nothing is
// left.
std::string cluster_name_of(const std::string& file);

// What stands for a key where none is pinned: no key has it, so that who goes by it reaches no host.
std::string no_host_key();

}  // namespace muster
