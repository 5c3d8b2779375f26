// A spec for hosts that are measured without being managed (`muster accept --hosts`): generated from their
// list and their inventories, so that planner, judge and report treat them like declared nodes.
//
// Their hardware is not declared. What most hosts of a group have becomes the `hardware` of each, so that a
// host that lost a GPU, a memory module or a link fails in comparison. Fewer than three hosts have no
// majority: then nothing is declared, and only a host's own history shows a loss. Drives are not declared: a
// disk group that matches a different number of drives would block the whole plan.
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
  std::string group;                     // given by the user; empty: hosts of its product
  const HardwareFacts* facts = nullptr;  // null: not known
  std::optional<int> rdma_ports = {};    // active ones; absent: unknown
  std::string host_key = {};             // "SHA256:..."; empty: already checked by the command that connected
};

struct HostsSpec {
  std::string text;                // YAML; the same for the same hosts in any order
  Spec spec;                       // as parse_spec() reads it
  std::vector<std::string> notes;  // for people: groups that were made, and what has no majority
};

// Code::invalid with all errors: no hosts, invalid or repeated names or addresses, addresses that no network
// of /8 to /30 contains, an invalid cluster name. `vars`: what profiles may name as {{vars.NAME}}.
Result<HostsSpec> hosts_spec(const std::string& cluster, const std::string& profile,
                             const std::vector<AcceptHost>& hosts,
                             const std::map<std::string, std::string>& vars = {});

// Host -> group. Hosts without a group from the user form one group if all have the same product, else one
// per product: "hosts", or "hosts-1", "hosts-2" in the order of products.
std::map<std::string, std::string> groups_of(const std::vector<AcceptHost>& hosts);

// The name of a cluster from that of a file: "lists/GPU hosts.txt" -> "gpu-hosts"; "hosts" if nothing is
// left.
std::string cluster_name_of(const std::string& file);

// Placeholder if no key is pinned: it matches no key, so that a connection that checks it reaches no host.
std::string no_host_key();

}  // namespace muster
