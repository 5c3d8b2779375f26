#include "controller/plan/context.h"

#include <algorithm>

#include "controller/plan/closed_port.h"
#include "controller/plan/interconnect.h"
#include "controller/plan/label_lines.h"
#include "controller/plan/network_services.h"
#include "controller/plan/storage_context.h"

namespace muster {
namespace {

// Words of a variable; empty when it is not declared.
Json words_of(const Json& vars, const char* name) {
  Json out = Json::array();
  const std::string text = vars.value(name, "");
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" ,", at),
                 end = std::min(text.find_first_of(" ,", begin), text.size());
    if (begin == std::string::npos) break;
    out.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return out;
}

Json hardware_of(const HardwareSpec& h) {
  Json out = {{"gpu_model", h.gpu_model},
              {"cpu_model", h.cpu_model},
              {"memory_bytes_min", h.memory_bytes_min},
              {"nics", h.nics},
              {"pcie", h.pcie}};
  if (h.gpus) out["gpus"] = *h.gpus;
  if (h.cpus) out["cpus"] = *h.cpus;
  return out;
}

// Behind the last node comes the first again.
const NodeSpec& next_of(const NodeSet& set, const NodeSpec& node) {
  if (set.members.empty()) return node;
  const auto next =
      std::upper_bound(set.members.begin(), set.members.end(), node.name,
                       [](const std::string& name, const NodeSpec* n) { return name < n->name; });
  return next == set.members.end() ? *set.members.front() : **next;
}

Json users_of(const Spec& spec) {
  Json users = Json::array();
  for (const auto& [name, u] : spec.users)
    users.push_back(
        {{"name", u.name.empty() ? name : u.name}, {"keys", u.keys}, {"sudo", u.sudo}, {"uid", u.uid}});
  return users;
}

// RDMA is declared by the playbook that sets it up: what is measured then must be there.
Json rdma_peers(const ContextInput& in) {
  Json out = Json::array();
  const NodeSet& set = *in.cluster.of("interconnect").set;
  if (!set.has(in.node)) return out;
  for (const Json& peer : set.nodes)
    if (peer["name"] != in.node.name) out.push_back(peer);
  return out;
}

// What machines ask the controller for while they boot, on the machine where it runs: DHCP from no address
// yet, and TFTP. The rest is on ports that the nodes may use among themselves anyway.
Json controller_rules(const ContextInput& in) {
  if (in.node.address != in.controller_address) return Json::array();
  return {{{"port", 67}, {"proto", "udp"}, {"comment", "DHCP"}},
          {{"from", in.spec.network.provisioning.cidr}, {"port", 69}, {"proto", "udp"}, {"comment", "TFTP"}}};
}

Json closed_port_of(const ContextInput& in) {
  const auto port = closed_port(in.spec, in.node, in.controller_address);
  return port ? Json(*port) : Json();
}

// An earlier version left labels that choose the system's own partitions. Seen, not declared: no part of the
// configuration digest.
bool has_labels(const ContextInput& in) {
  const auto seen = in.cluster.machines().find(in.node.name);
  return in.with_content && seen != in.cluster.machines().end() &&
         !label_lines(in.spec, in.node, *seen->second).of_system.empty();
}

bool keeps_accounts(const ContextInput& in) {
  const NodeSpec* slurm = in.cluster.of("scheduler").leader;
  if (!slurm) slurm = in.cluster.of("").leader;
  return slurm && in.spec.plays(*slurm, "accounting");
}

}  // namespace

std::string prefix_of(const std::string& cidr) {
  const auto slash = cidr.find('/');
  return slash == std::string::npos ? "" : cidr.substr(slash + 1);
}

NodeContext::NodeContext(const ContextInput& in) : node_(in.node), cluster_(in.cluster) {
  const Spec& spec = in.spec;
  Json vars = Json::object();
  for (const auto& [key, value] : spec.vars) vars[key] = value;
  for (const auto& [key, value] : in.node.vars) vars[key] = value;
  values_ = {{"cluster", spec.cluster},
             {"controller",
              {{"address", in.controller_address}, {"url", "https://" + in.controller_address + ":7443"}}},
             {"node",
              {{"name", in.node.name},
               {"address", in.node.address},
               {"prefix", prefix_of(spec.network.provisioning.cidr)},
               {"mac", in.node.mac},
               {"role", in.node.role},
               {"image", in.node.image},
               {"ssh_port", in.node.adopt.port},
               {"by_label", has_labels(in)},
               {"hardware", hardware_of(in.node.hardware)}}},
             {"controller_rules", controller_rules(in)},
             {"closed_port", closed_port_of(in)},
             {"users", users_of(spec)},
             {"hosts", in.cluster.hosts()},
             {"public", in.public_values},
             {"accounting", keeps_accounts(in)},
             {"paused", in.with_content && in.pausing.count(in.node.name) > 0},
             {"pausing", in.with_content && !in.pausing.empty()},
             {"drain_timeout_seconds", spec.limits.drain_timeout / kSecond},
             {"has_mpi", spec.plays(in.node, "mpi")},
             {"rdma_peers", rdma_peers(in)},
             {"soft_roce", vars.value("soft_roce", "") == "yes"},
             {"acs", {{"bridges", words_of(vars, "acs_bridges")}}},
             {"rdma_ports", words_of(vars, "rdma_ports")},
             {"vars", vars}};
  values_.update(storage_of(in));
  values_.update(services_of(spec, in.node));
  values_.update(interconnect_of(spec, in.node));
  enter(std::string());
}

void NodeContext::enter(const std::string& playbook) {
  playbook_ = playbook;
  enter(cluster_.of(playbook));
}

void NodeContext::enter(const NodeView& view) {
  if (view_.set != view.set) {
    leave();
    NodeSet& set = *view.set;
    view_.set = view.set;
    values_["nodes"] = std::move(set.nodes);
    const int place = set.place_of(node_.name);
    if (place >= 0) {
      const auto own = set.peers.begin() + place;
      own_entry_ = std::move(*own);
      set.peers.erase(own);
    }
    values_["peers"] = std::move(set.peers);
    values_["next"] = name_and_address(next_of(set, node_));
    values_["own_gpus"] = Json::array();
    for (const auto& m : set.gpu_nodes)
      if (m["name"] == node_.name) values_["own_gpus"].push_back(m);
    values_["machines"] = std::move(set.machines);
    values_["gpu_fleet"] = std::move(set.gpu_nodes.size() < 2 ? set.no_fleet : set.gpu_nodes);
    values_["has_gpus"] = set.has_gpus;
    values_["gpus_of_each"] = set.gpus_of_each;
  }
  view_.leader = view.leader;
  values_["leader"] = name_and_address(view.leader ? *view.leader : node_);
  values_["is_leader"] = leads();
}

// Gives back what was lent.
void NodeContext::leave() {
  if (!view_.set) return;
  NodeSet& set = *view_.set;
  set.nodes = std::move(values_["nodes"]);
  set.peers = std::move(values_["peers"]);
  if (const int place = set.place_of(node_.name); place >= 0)
    set.peers.insert(set.peers.begin() + place, std::move(own_entry_));
  set.machines = std::move(values_["machines"]);
  (set.gpu_nodes.is_null() ? set.gpu_nodes : set.no_fleet) = std::move(values_["gpu_fleet"]);
  view_ = {};
}

}  // namespace muster
