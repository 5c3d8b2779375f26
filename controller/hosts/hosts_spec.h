// A spec for hosts that are measured without being managed (`muster accept --hosts`): generated from their
// list and their inventories, so that planner, judge and report treat them like declared nodes.
//
// Their hardware is not declared. What a majority of a group's hosts have becomes the `hardware` of all of
// them, so that a host that lost a GPU, a memory module or a link fails the comparison. For fewer than three
// hosts nothing is declared, and only a host's own history shows a loss. Drives are not declared: a disk
// group that matches a different number of drives would block the whole plan.
//
// The spec is never applied: it is planned with RequestKind::accept only. Thread safety: stateless functions.
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
  std::string address;                   // IPv4 address on which the other hosts reach it
  std::string group;                     // given by the user; empty: grouped by product
  const HardwareFacts* facts = nullptr;  // null: not known
  std::optional<int> rdma_ports = {};    // number of active ports; absent: unknown
  std::string host_key = {};             // "SHA256:..."; empty: already checked by the command that connected
};

struct HostsSpec {
  std::string text;                // YAML; does not depend on the order of the hosts
  Spec spec;                       // `text` as parsed by parse_spec()
  std::vector<std::string> notes;  // for the operator: the groups formed, and values without a majority
};

// Code::invalid, with all errors: no hosts, invalid or repeated names or addresses, no /8 to /30 network with
// all addresses, an invalid cluster name. `vars`: values of {{vars.NAME}} in profiles.
Result<HostsSpec> hosts_spec(const std::string& cluster, const std::string& profile,
                             const std::vector<AcceptHost>& hosts,
                             const std::map<std::string, std::string>& vars = {});

// Returns the group of each host. Hosts without a group from the user form one group, "hosts", if all have
// the same product, else one group per product: "hosts-1", "hosts-2", in the order of product names.
std::map<std::string, std::string> groups_of(const std::vector<AcceptHost>& hosts);

// From a file name: "lists/GPU hosts.txt" -> "gpu-hosts"; "hosts" if no usable character is left.
std::string cluster_name_of(const std::string& file);

}  // namespace muster
