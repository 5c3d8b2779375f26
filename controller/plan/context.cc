#include "controller/plan/context.h"

#include <algorithm>

#include "base/ports.h"
#include "base/split.h"
#include "controller/plan/interconnect.h"
#include "controller/plan/label_lines.h"
#include "controller/plan/network_services.h"
#include "controller/plan/storage_context.h"
#include "controller/spec/own_variables.h"

namespace muster {
namespace {

// Returns the words of a variable, which blanks or commas separate; empty if it is not declared.
Json words_of(const Json& vars, const char* name) {
  Json out = Json::array();
  for (const auto& word : split_words(vars.value(name, ""), " ,")) out.push_back(word);
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

// Returns the node after this one; the first follows the last.
const NodeSpec& next_of(const NodeSet& set, const NodeSpec& node) {
  if (set.members.empty()) return node;
  const auto next = std::upper_bound(set.members.begin(), set.members.end(), node.name,
                                     [](const NodeName& name, const NodeSpec* n) { return name < n->name; });
  return next == set.members.end() ? *set.members.front() : **next;
}

// Returns the node's entry in `gpu_nodes`, which is sorted by name, as a list of one; empty: it has no GPUs.
Json own_gpus(const NodeSet& set, const NodeSpec& node) {
  const auto own = std::lower_bound(set.gpu_nodes.begin(), set.gpu_nodes.end(), node.name,
                                    [](const Json& m, const std::string& name) { return m["name"] < name; });
  Json out = Json::array();
  if (own != set.gpu_nodes.end() && (*own)["name"] == node.name) out.push_back(*own);
  return out;
}

Json users_of(const Spec& spec) {
  Json users = Json::array();
  for (const auto& [name, u] : spec.users)
    users.push_back(
        {{"name", u.name.empty() ? name : u.name}, {"keys", u.keys}, {"sudo", u.sudo}, {"uid", u.uid}});
  return users;
}

// Firewall rules for traffic of booting machines to the controller's own machine: DHCP, before they have an
// address, and TFTP. All other traffic uses ports that are open between nodes anyway.
Json controller_rules(const ContextInput& in) {
  if (in.node.address != in.controller_address) return Json::array();
  return {{{"port", kDhcpPort}, {"proto", "udp"}, {"comment", "DHCP"}},
          {{"from", in.spec.network.provisioning.cidr},
           {"port", kTftpPort},
           {"proto", "udp"},
           {"comment", "TFTP"}}};
}

// Where this node can scrape the controller's metrics: none or one "ADDRESS:PORT".
Json metrics_of(const ContextInput& in) {
  Json out = Json::array();
  std::string host = in.metrics_address;
  const bool own_machine = in.node.address == in.controller_address;
  if (host.empty() || ((host.starts_with("127.") || host == "::1") && !own_machine)) return out;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  out.push_back(host + ":" + std::to_string(kMetricsPort));
  return out;
}

Json closed_port_of(const ContextInput& in) {
  const auto port = closed_port(in.spec, in.node, in.controller_address);
  return port ? Json(*port) : Json();
}

// True if an earlier version of muster left lines on the node that select the system's own partitions by
// label. This was seen, not declared, so it is not part of the configuration digest.
bool has_labels(const ContextInput& in) {
  const auto seen = in.cluster.machines().find(in.node.name);
  return in.with_content && seen != in.cluster.machines().end() &&
         !label_lines(in.spec, in.node, *seen->second).of_system.empty();
}

// Where containers keep images and root file systems (`docker_root` is empty where Docker's own folder is
// used), and the storage that they have mounted. `values` has the node's variables and storage.
Json containers_of(const Json& values) {
  const Json& local = values["storage_local"];
  const std::string mount = local.empty() ? "" : local[0].value("mount", "");
  const std::string root = mount.empty() ? "/var/lib/muster/containers" : mount + "/containers";
  std::string docker = values["vars"].value("docker_data_root", "");
  if (docker.empty() && !mount.empty()) docker = root + "/docker";
  Json mounts = Json::array();
  for (const char* list : {"storage_local", "storage_shared", "storage_external"})
    for (const Json& section : values[list])
      if (list != std::string("storage_external") || !section.value("writable", false))
        mounts.push_back({{"name", section["name"]}, {"mount", section["mount"]}});
  return {{"container_root", root}, {"docker_root", docker}, {"container_mounts", std::move(mounts)}};
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

NodeContext::NodeContext(const ContextInput& in) : in_(in) {
  const Spec& spec = in.spec;
  Json vars = Json::object();
  for (const auto& [key, value] : spec.vars) vars[key] = value;
  for (const auto& [key, value] : in.node.vars) vars[key] = value;
  values_ = {{"cluster", spec.cluster},
             {"controller",
              {{"address", in.controller_address},
               {"url", tls_url(in.controller_address)},
               {"metrics", metrics_of(in)}}},
             {"node",
              {{"name", in.node.name},
               {"address", in.node.address},
               {"prefix", prefix_of(spec.network.provisioning.cidr)},
               {"mac", in.node.mac},
               {"role", in.node.role},
               {"image", in.node.image},
               {"ssh_port", in.node.adopt.port},
               {"hardware", hardware_of(in.node.hardware)}}},
             {"controller_rules", controller_rules(in)},
             {"closed_port", closed_port_of(in)},
             {"users", users_of(spec)},
             {"public", in.public_values},
             {"accounting", keeps_accounts(in)},
             {"drain_timeout_seconds", spec.limits.drain_timeout / kSecond},
             {"has_mpi", spec.plays(in.node, "mpi")},
             {"has_containers", spec.plays(in.node, "containers")},
             {"has_rdma_peers", set_of("rdma_peers")->others_than(in.node) > 0},
             {"soft_roce", vars.value(own_variable::kSoftRoce, "") == "yes"},
             {"acs", {{"bridges", words_of(vars, own_variable::kAcsBridges)}}},
             {"rdma_ports", words_of(vars, own_variable::kRdmaPorts)},
             {"libs", vars.value(own_variable::kLibs, "")},
             {"vars", vars}};
  values_.update(services_of(spec, in.node));
  values_.update(interconnect_of(spec, in.node));
  put_content();
  enter(std::string());
}

void NodeContext::put_content() {
  values_["node"]["by_label"] = has_labels(in_);
  values_["paused"] = in_.with_content && in_.pausing.count(node().name) > 0;
  values_["pausing"] = in_.with_content && !in_.pausing.empty();
  values_["in_rollout"] = in_.with_content && in_.in_rollout;
  for (Json storage = storage_of(in_); auto& [name, list] : storage.items()) values_[name] = std::move(list);
  values_.update(containers_of(values_));
}

void NodeContext::forget_content() {
  give_back_members();
  in_.with_content = false;
  put_content();
}

void NodeContext::give_back_members() { return_members(in_, values_); }

void NodeContext::enter(const std::string& playbook) {
  playbook_ = playbook;
  enter(cluster().of(playbook));
}

void NodeContext::enter(const NodeView& view) {
  if (view_.set != view.set) {
    const NodeSet& set = *view.set;
    values_["has_peers"] = set.others_than(node()) > 0;
    values_["next"] = name_and_address(next_of(set, node()));
    values_["own_gpus"] = own_gpus(set, node());
    values_["has_gpus"] = set.has_gpus;
    values_["gpus_of_each"] = set.gpus_of_each;
  }
  const bool same_leader = view_.set && view_.leader == view.leader;
  view_ = view;
  if (same_leader) return;
  values_["leader"] = name_and_address(view.leader ? *view.leader : node());
  values_["is_leader"] = leads();
}

// RDMA peers are the nodes with playbook `interconnect`, which sets up RDMA; on these nodes it must be
// present and is measured.
const NodeSet* NodeContext::set_of(const std::string& name) {
  if (name == "peers") return view_.set;
  if (name != "rdma_peers") return nullptr;
  const NodeSet* set = cluster().of("interconnect").set;
  return set->has(node()) ? set : &cluster().nobody();
}

const Json* NodeContext::root(const std::string& name) {
  if (name == "item") return item_;
  if (name == "hosts") return &cluster().hosts();
  if (name == "nodes") return &view_.set->nodes;
  if (name == "machines") return &view_.set->machines;
  if (name == "gpu_fleet") return &view_.set->gpu_fleet;
  if (const NodeSet* set = set_of(name)) {
    Json& others = without_self_[set];
    if (!others.is_null()) return &others;
    others = set->nodes;
    if (const int place = set->place_of(node().name); place >= 0) others.erase(static_cast<size_t>(place));
    return &others;
  }
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &*found;
}

const Json* NodeContext::find(const std::string& name) {
  static const Json kUnset = "";
  const size_t dot = name.find('.');
  const Json* first = root(name.substr(0, dot));
  if (!first || dot == std::string::npos) return first;
  const Json* found = find_name(*first, name.substr(dot + 1));
  const bool may_be_unset = !found && optional_ && name.starts_with("vars.");
  return may_be_unset && is_optional(*optional_, name.substr(dot + 1)) ? &kUnset : found;
}

// The lists of a node set never change, so the set's address identifies their values.
void NodeContext::identify(const std::string& name, std::vector<uintptr_t>& into) {
  const auto add = [&](const void* what) { into.push_back(reinterpret_cast<uintptr_t>(what)); };
  if (name == "nodes" || name == "machines" || name == "gpu_fleet") return add(view_.set);
  if (const NodeSet* set = set_of(name)) {
    add(set);
    return add(&node());
  }
  into.push_back(cluster().rendered().values().number_of(name, find(name)));
}

}  // namespace muster
