#include "controller/plan/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/plan/external.h"
#include "controller/plan/gpu_type.h"
#include "controller/plan/interconnect.h"
#include "controller/plan/services.h"

namespace muster {
namespace {

Json name_and_address(const NodeSpec& n) { return {{"name", n.name}, {"address", n.address}}; }

Json disk_list(const NodeDisks& disks, const NodeSpec& node, const std::string& group, bool with_content) {
  Json out = Json::array();
  const auto found = disks.groups.find(group);
  if (found == disks.groups.end()) return out;
  const auto declared = node.disks.find(group);
  const DiskPolicy policy = declared == node.disks.end() ? DiskPolicy::keep : declared->second.policy;
  const char* word = policy == DiskPolicy::keep     ? "keep"
                     : policy == DiskPolicy::format ? "format"
                                                    : "format-if-blank";
  // The hash is the right to write: only what the destruction list names gets one. A disk that is used again
  // as it is has none, and the agent refuses to format it whatever its policy says.
  const auto approved = [&](const DiskFacts& d) {
    return std::any_of(disks.destroys.begin(), disks.destroys.end(), [&](const Destruction& gone) {
      return gone.group == group && gone.serial == d.serial && gone.wwid == d.wwid;
    });
  };
  for (const auto& d : found->second)
    out.push_back({{"serial", d.serial},
                   {"wwid", d.wwid},
                   {"model", d.model},
                   {"size_bytes", d.size_bytes},
                   {"content_hash", with_content && approved(d) ? d.content_hash : ""},
                   {"policy", word}});
  return out;
}

// Three monitors outvote a lost one; two would stop as soon as either is away.
Json ceph_mons(const Json& members) {
  Json out = Json::array();
  for (size_t i = 0; i < (members.size() >= 3 ? 3 : 1); ++i) out.push_back(members[i]);
  return out;
}

// What only Ceph's steps ask for. Each object store gets a quarter of the node's memory, shared by its disks:
// at most Ceph's default of 4 GiB, at least what Ceph accepts.
void add_ceph(const ContextInput& in, const StorageSpec& s, Json& item) {
  const std::string fsid = ceph_fsid(in.spec.cluster, s.name);
  const Json mons = ceph_mons(item["members"]);
  for (auto& disk : item["disks"]) disk["uuid"] = ceph_osd_uuid(fsid, disk["serial"]);
  const bool is_mon =
      std::any_of(mons.begin(), mons.end(), [&](const Json& m) { return m["name"] == in.node.name; });
  const auto& machines = in.cluster.machines();
  const auto seen = machines.find(in.node.name);
  const int64_t memory = seen == machines.end() ? in.node.hardware.memory_bytes_min
                                                : static_cast<int64_t>(seen->second->memory_bytes);
  const int64_t share = memory / 4 / std::max<int64_t>(1, static_cast<int64_t>(item["disks"].size()));
  item.update({{"fsid", fsid},
               {"mons", mons},
               {"is_mon", is_mon},
               {"member_count", item["members"].size()},
               {"standbys", mons.size() > 1 ? 1 : 0},
               {"min_copies", s.copies - s.copies / 2},
               {"osd_memory", std::clamp<int64_t>(share >> 20, 896, 4096) << 20}});
}

// What the kernel of a node that has it mounted rightly shows, as globs: file system type and source.
std::pair<std::string, std::string> right_mount(const std::string& cluster, const StorageSpec& s,
                                                const Json& leader, bool served_here) {
  const std::string address = leader["address"];
  // Monitors come and go under a mounted file system; its own name stays.
  if (s.engine == "ceph") return {"ceph", fmt::format("muster@{}.{}=/", ceph_fsid(cluster, s.name), s.name)};
  if (s.engine == "beegfs") return {"beegfs", "beegfs_nodev"};
  if (s.engine == "moosefs") return {"fuse*", "*" + address + ":9421"};
  if (served_here) return {s.fs, "/dev/disk/by-label/" + s.name};
  return {"nfs4", address + ":" + s.mount};
}

Json local_storage(const ContextInput& in) {
  Json out = Json::array();
  for (const auto& s : in.spec.storage)
    if (s.engine == "local" && is_member(s, in.node))
      out.push_back({{"name", s.name},
                     {"mount", s.mount},
                     {"level", s.level},
                     {"fs", s.fs},
                     {"disks", disk_list(in.disks, in.node, s.disks, in.with_content)}});
  return out;
}

// Whether the metadata of this section may be begun: the engines' playbooks give a disk its label only once
// there is metadata, so a label says that there was some. Not part of the configuration digest.
bool may_create(const ContextInput& in, const StorageSpec& s) {
  const auto& machines = in.cluster.machines();
  return !in.with_content || std::none_of(in.spec.nodes.begin(), in.spec.nodes.end(), [&](const NodeSpec& n) {
    const auto seen = machines.find(n.name);
    return seen != machines.end() && holds_our_data(in.spec, n, s, *seen->second);
  });
}

// Other members that were last seen with the metadata of a master: what this node has may be behind theirs.
// Not part of the configuration digest.
Json other_masters(const ContextInput& in, const StorageSpec& s) {
  Json out = Json::array();
  if (!in.with_content) return out;
  for (const auto& n : in.spec.nodes) {
    if (n.name == in.node.name || !is_member(s, n)) continue;
    const auto seen = in.cluster.machines().find(n.name);
    if (seen == in.cluster.machines().end()) continue;
    const auto& metadata = seen->second->storage_metadata;
    if (const auto found = metadata.find(s.engine); found != metadata.end() && found->second)
      out.push_back(n.name);
  }
  return out;
}

// Who mounts the section but its leader, who serves it. For the leader only: N nodes need no N lists.
Json clients_of(const Spec& spec, const StorageSpec& s, const SectionNetwork& network,
                const std::string& leader) {
  Json out = Json::array();
  for (const auto& n : spec.nodes)
    if (n.name != leader && mounts(s, n)) out.push_back({{"name", n.name}, {"address", network.address(n)}});
  return out;
}

Json shared_storage(const ContextInput& in, const std::string& engine) {
  Json out = Json::array();
  for (const auto& s : in.spec.storage) {
    if (s.engine == "local" || s.engine == "external" || (!engine.empty() && s.engine != engine)) continue;
    if (!mounts(s, in.node)) continue;
    const SectionNetwork network(in.spec, s);
    Json members = Json::array();
    for (const auto& n : in.spec.nodes)
      if (is_member(s, n)) members.push_back({{"name", n.name}, {"address", network.address(n)}});
    if (members.empty()) continue;
    const NodeSpec& first = *storage_leader(in.spec, s);
    const Json leader = {{"name", first.name}, {"address", network.address(first)}};
    const bool member = is_member(s, in.node), leads = first.name == in.node.name;
    const auto [fstype, source] = right_mount(in.spec.cluster, s, leader, leads);
    out.push_back(
        {{"name", s.name},
         {"engine", s.engine},
         {"external", false},
         {"mount", s.mount},
         {"copies", s.copies},
         {"leader", leader},
         {"level", s.level},
         {"fs", s.fs},
         {"fstype", fstype},
         {"source", source},
         {"is_leader", leads},
         {"is_member", member},
         {"members", members},
         {"address", network.address(in.node)},
         {"network", network.cidr()},
         {"clients", leads ? clients_of(in.spec, s, network, in.node.name) : Json::array()},
         {"disks", member ? disk_list(in.disks, in.node, s.disks, in.with_content) : Json::array()}});
    if (s.engine == "moosefs" || s.engine == "ceph") out.back()["may_create"] = may_create(in, s);
    if (s.engine == "moosefs")
      out.back().update({{"take_over", !s.server.empty()},
                         {"accept_old", in.with_content && in.forced.count(first.name) > 0},
                         {"other_masters", leads ? other_masters(in, s) : Json::array()}});
    if (s.engine == "ceph") add_ceph(in, s, out.back());
  }
  if (engine.empty())
    for (Json& one : external_storage(in.spec, in.node, true)) out.push_back(std::move(one));
  return out;
}

// What a scheduler wants to know of every node: found, or else declared; a node of which neither is known is
// not in it. Memory with a margin of 5 % for the kernel. Device files are empty without GPUs.
std::string gpu_files(int gpus) {
  return gpus == 0 ? "" : gpus == 1 ? "/dev/nvidia0" : fmt::format("/dev/nvidia[0-{}]", gpus - 1);
}

Json machines_of(const std::vector<const NodeSpec*>& nodes,
                 const std::map<std::string, const HardwareFacts*>& machines) {
  Json out = Json::array();
  for (const NodeSpec* node : nodes) {
    const NodeSpec& n = *node;
    const auto found = machines.find(n.name);
    const HardwareFacts* facts = found == machines.end() ? nullptr : found->second;
    if (!facts && (!n.hardware.cpus || n.hardware.memory_bytes_min <= 0)) continue;
    const int64_t bytes = facts ? static_cast<int64_t>(facts->memory_bytes) : n.hardware.memory_bytes_min;
    const std::vector<GpuFacts> found_gpus = facts ? facts->gpus : std::vector<GpuFacts>();
    const int gpus = facts ? static_cast<int>(found_gpus.size()) : n.hardware.gpus.value_or(0);
    Json one = name_and_address(n);
    one.update({{"role", n.role},
                {"cpus", std::max(1, facts ? facts->cpus.count : *n.hardware.cpus)},
                {"memory_mib", bytes / 100 * 95 >> 20},
                {"gpus", gpus},
                {"gpu_files", gpu_files(gpus)},
                {"gpu_type", gpu_type_of(n.hardware.gpu_model, found_gpus)}});
    out.push_back(std::move(one));
  }
  return out;
}

// Those of `machines` with GPUs. What is declared counts: a node that lost its GPUs is no node without GPUs.
Json gpu_nodes_of(const Spec& spec, const Json& machines) {
  Json out = Json::array();
  for (Json m : machines) {
    const NodeSpec* node = spec.node(m["name"].get<std::string>());
    if (const int declared = node ? node->hardware.gpus.value_or(0) : 0; declared > 0)
      m.update({{"gpus", declared}, {"gpu_files", gpu_files(declared)}});
    if (m["gpus"] > 0) out.push_back(std::move(m));
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

const Json* lookup(const Json& context, const std::string& path) {
  const Json* at = &context;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const auto it = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
    if (!at->is_object() || it == at->end()) return nullptr;
    at = &*it;
    begin = end + 1;
  }
  return at;
}

bool truthy(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0;
  if (!value.is_string()) return !value.is_null() && !value.empty();
  std::string text = value.get<std::string>();
  text.erase(0, text.find_first_not_of(" \n\t"));
  text.erase(text.find_last_not_of(" \n\t") + 1);
  return !(text.empty() || text == "no" || text == "false" || text == "0");
}

std::string item_label(const Json& item, size_t index) {
  if (item.is_string()) return item.get<std::string>();
  if (item.is_object() && item.contains("name") && item["name"].is_string())
    return item["name"].get<std::string>();
  return std::to_string(index);
}

Result<Json> rendered(const Json& value, const Json& context) {
  if (value.is_null()) return Json();
  return render_params(value, context);
}

// One step for one item; nothing when its `when` says no.
Result<std::vector<PlannedStep>> plan_one(const PlaybookStep& step, const std::string& id,
                                          const Json& context) {
  if (!step.when.empty()) {
    TRY(const Json when, render_params(Json(step.when), context));
    if (!truthy(when)) return std::vector<PlannedStep>{};
  }
  PlannedStep planned;
  planned.stage = step.stage;
  planned.on = step.on;
  planned.step.id = id;
  planned.step.module = step.module;
  planned.step.phase = step.phase;
  planned.step.mandatory = step.mandatory;
  TRY(planned.step.params, rendered(step.params, context));
  TRY(planned.step.verify, rendered(step.verify, context));
  TRY(planned.step.expect, rendered(step.expect, context));
  // There, because agents of an older version refuse a step with a key they do not know.
  if (!step.blocks.empty()) planned.step.expect["blocks"] = step.blocks;
  if (planned.step.params.is_null()) planned.step.params = Json::object();
  if (step.module == "sysctl") prefer_declared(context.value("sysctls", Json()), planned.step.params);
  return std::vector<PlannedStep>{std::move(planned)};
}

// Stands for a step whose list is empty here: the report says why it was not run.
PlannedStep not_here(const PlaybookStep& step, const std::string& id) {
  PlannedStep planned;
  planned.stage = step.stage;
  planned.on = step.on;
  planned.step.id = id;
  planned.step.module = "not_applicable";
  planned.step.phase = step.phase;
  planned.step.params = {{"reason", step.otherwise}};
  planned.step.mandatory = false;
  return planned;
}

}  // namespace

std::string prefix_of(const std::string& cidr) {
  const auto slash = cidr.find('/');
  return slash == std::string::npos ? "" : cidr.substr(slash + 1);
}

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

int NodeSet::place_of(const std::string& node) const {
  const auto at = std::lower_bound(members.begin(), members.end(), node,
                                   [](const NodeSpec* n, const std::string& name) { return n->name < name; });
  return at != members.end() && (*at)->name == node ? static_cast<int>(at - members.begin()) : -1;
}

ClusterContext::ClusterContext(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines)
    : spec_(spec), machines_(machines) {
  for (const auto& n : spec.nodes) hosts_ += n.address + " " + n.name + "\n";
}

NodeSet& ClusterContext::set_of(std::vector<const NodeSpec*> members) {
  std::sort(members.begin(), members.end(),
            [](const NodeSpec* a, const NodeSpec* b) { return a->name < b->name; });
  auto& set = sets_[members];
  if (set) return *set;
  set = std::make_unique<NodeSet>();
  set->nodes = set->ring = set->no_fleet = Json::array();
  for (const NodeSpec* n : members) {
    set->nodes.push_back({{"name", n->name}, {"address", n->address}, {"role", n->role}});
    set->ring.push_back(name_and_address(*n));
  }
  set->peers = set->nodes;
  set->machines = machines_of(members, machines_);
  set->gpu_nodes = gpu_nodes_of(spec_, set->machines);
  for (const auto& m : set->machines) set->has_gpus = set->has_gpus || m["gpus"] > 0;
  for (const auto& m : set->gpu_nodes) {
    const int64_t gpus = m["gpus"];
    set->gpus_of_each = set->gpus_of_each == 0 ? gpus : std::min(set->gpus_of_each, gpus);
  }
  set->members = std::move(members);
  return *set;
}

NodeView ClusterContext::of(const std::string& playbook, const std::string& among) {
  const auto key = std::make_pair(playbook, among);
  if (const auto known = views_.find(key); known != views_.end()) return known->second;
  std::vector<const NodeSpec*> members;
  for (const auto& n : spec_.nodes)
    if ((playbook.empty() || spec_.plays(n, playbook)) && (among.empty() || spec_.plays(n, among)))
      members.push_back(&n);
  NodeView view{&set_of(std::move(members)), nullptr};
  const auto& set = *view.set;
  const auto take = [&](const NodeSpec* node) {
    if (!view.leader && node && set.has(*node)) view.leader = node;
  };
  if (!playbook.empty()) take(spec_.leader_of(playbook));
  if (!among.empty()) take(spec_.leader_of(among));
  // Slurm's accounting has no leader where Slurm's has it not.
  if (!set.members.empty() && (playbook != "accounting" || !among.empty())) take(set.members.front());
  return views_[key] = view;
}

NodeSet* ClusterContext::of_section(const std::string& name) {
  if (const auto known = sections_.find(name); known != sections_.end()) return known->second;
  NodeSet* found = nullptr;
  for (const auto& s : spec_.storage) {
    if (s.name != name || s.engine == "local") continue;
    std::vector<const NodeSpec*> members;
    for (const auto& n : spec_.nodes)
      if (mounts(s, n)) members.push_back(&n);
    found = &set_of(std::move(members));
  }
  return sections_[name] = found;
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

namespace {

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

bool keeps_accounts(const ContextInput& in) {
  const NodeSpec* slurm = in.cluster.of("scheduler").leader;
  if (!slurm) slurm = in.cluster.of("").leader;
  return slurm && in.spec.plays(*slurm, "accounting");
}

}  // namespace

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
               {"hardware", hardware_of(in.node.hardware)}}},
             {"controller_rules", controller_rules(in)},
             {"users", users_of(spec)},
             {"storage_local", local_storage(in)},
             {"storage_shared", shared_storage(in, "")},
             {"storage_moosefs", shared_storage(in, "moosefs")},
             {"storage_nfs", shared_storage(in, "nfs")},
             {"storage_ceph", shared_storage(in, "ceph")},
             {"storage_beegfs", shared_storage(in, "beegfs")},
             {"storage_external", external_storage(spec, in.node, false)},
             {"hosts", in.cluster.hosts()},
             {"public", in.public_values},
             {"accounting", keeps_accounts(in)},
             {"has_mpi", spec.plays(in.node, "mpi")},
             {"rdma_peers", rdma_peers(in)},
             {"soft_roce", vars.value("soft_roce", "") == "yes"},
             {"acs", {{"bridges", words_of(vars, "acs_bridges")}}},
             {"rdma_ports", words_of(vars, "rdma_ports")},
             {"vars", vars}};
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

namespace {

// The steps of one playbook for one node.
class StepPlanner {
 public:
  StepPlanner(const Playbook& playbook, NodeContext& context, std::vector<std::string>& problems)
      : playbook_(playbook), context_(context), problems_(problems), home_(context.view()) {}

  std::vector<PlannedStep> run(const std::string& phase) {
    for (const auto& step : playbook_.steps) {
      if (step.phase != phase) continue;
      if (is_among(step)) plan(step);
      context_.values().erase("item");
      context_.enter(home_);
    }
    return std::move(out_);
  }

 private:
  std::string id_of(const PlaybookStep& step) const { return playbook_.name + "/" + step.name; }

  void complain(const PlaybookStep& step, const std::string& text) {
    problems_.push_back(fmt::format("playbook {}, line {}, step '{}' on {}: {}", playbook_.name, step.line,
                                    step.name, context_.node().name, text));
  }

  // Of a storage section its own leader is meant, which holds what the others ask for.
  bool is_for(const PlaybookStep& step, const Json& item) const {
    const bool leads = context_.leads();
    const bool leads_it = item.is_object() ? item.value("is_leader", leads) : leads;
    return step.on == "all" || (step.on == "leader") == leads_it;
  }

  // From here on among whom the step is. Where that is nobody, the leader of all says why.
  bool is_among(const PlaybookStep& step) {
    if (step.among.empty()) return true;
    const NodeView view = context_.cluster().of(context_.playbook(), step.among);
    if (!view.set->has(context_.node())) {
      if (view.set->members.empty() && context_.leads()) too_few(step);
      return false;
    }
    context_.enter(view);
    return true;
  }

  // A cluster of one node has nothing between nodes, and nobody asks why.
  void too_few(const PlaybookStep& step) {
    if (step.otherwise.empty() || home_.set->members.size() < 2) return;
    out_.push_back(not_here(step, id_of(step)));
    out_.back().on = "all";  // it does nothing that others would wait for
    out_.back().about = context_.view().set;
    ids_.insert(out_.back().step.id);
  }

  void plan(const PlaybookStep& step) {
    if (step.for_each.empty()) {
      if (is_for(step, Json()) && !plan_item(step, id_of(step)) && !step.among.empty()) too_few(step);
      return;
    }
    const Json* list = lookup(context_.values(), step.for_each);
    if (!list || !list->is_array())
      return complain(step, "for_each: '" + step.for_each + "' is not a list of the context");
    const Json items = *list;
    if (items.empty() && !step.otherwise.empty() && is_for(step, Json())) {
      out_.push_back(not_here(step, id_of(step)));
      ids_.insert(out_.back().step.id);
    }
    const NodeView all = context_.view();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!is_for(step, items[i])) continue;
      // What is about the nodes is about those that have this storage section mounted.
      NodeSet* section = step.for_each.rfind("storage_", 0) == 0 && items[i].is_object()
                             ? context_.cluster().of_section(items[i].value("name", ""))
                             : nullptr;
      context_.enter(section ? NodeView{section, all.leader} : all);
      context_.values()["item"] = items[i];
      plan_item(step, id_of(step) + "[" + item_label(items[i], i) + "]");
    }
  }

  // False when `when` says no.
  bool plan_item(const PlaybookStep& step, std::string id) {
    const std::string wanted = id_of(step);
    for (int n = 2; !ids_.insert(id).second; ++n) id = fmt::format("{}#{}", wanted, n);
    auto planned = plan_one(step, id, context_.values());
    if (!planned.ok()) {
      complain(step, planned.error().message);
      return true;
    }
    for (auto& one : *planned) {
      one.about = context_.view().set;
      out_.push_back(std::move(one));
    }
    return !planned->empty();
  }

  const Playbook& playbook_;
  NodeContext& context_;
  std::vector<std::string>& problems_;
  const NodeView home_;
  std::vector<PlannedStep> out_;
  std::set<std::string> ids_;
};

}  // namespace

std::vector<PlannedStep> plan_steps(const Playbook& playbook, const std::string& phase, NodeContext& context,
                                    std::vector<std::string>& problems) {
  return StepPlanner(playbook, context, problems).run(phase);
}

}  // namespace muster
