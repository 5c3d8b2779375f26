#include "controller/plan/cluster_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_dump.h"
#include "base/standin.h"
#include "controller/engines/engine.h"
#include "controller/plan/disk_selection.h"
#include "controller/plan/gpu_type.h"
#include "controller/plan/gpus_for_jobs.h"

namespace muster {
namespace {

constexpr int64_t kForJobs = 95;  // percent of memory for jobs; the rest is for the kernel and the daemons

// slurmd reports the memory that the kernel makes available, and a node that reports less than its RealMemory
// is drained. Installed memory is the same after every boot: it is used, unless it exceeds the available
// memory by more than the margin covers (blocks of 2 GiB that are only partly present). Then it is lowered in
// steps: MemTotal varies by a MiB or two from boot to boot, and slurm.conf must not change with it.
int64_t memory_for_jobs_mib(const HardwareFacts& facts) {
  constexpr int64_t kMovesMib = 4, kStepMib = 64;
  const int64_t installed = static_cast<int64_t>(facts.memory_bytes) / 100 * kForJobs >> 20;
  const int64_t usable = static_cast<int64_t>(facts.memory_usable_bytes >> 20);
  if (usable == 0 || installed + kMovesMib <= usable) return installed;
  return std::max<int64_t>(1, usable * kForJobs / 100 / kStepMib * kStepMib);
}

// The device files of a node's GPUs, as the scheduler needs them; "" without GPUs.
std::string gpu_files(int gpus) {
  return gpus == 0 ? "" : gpus == 1 ? "/dev/nvidia0" : fmt::format("/dev/nvidia[0-{}]", gpus - 1);
}

Json machines_of(const Spec& spec, const std::vector<const NodeSpec*>& nodes,
                 const std::map<std::string, const HardwareFacts*>& machines,
                 const std::set<std::string>& with_driver) {
  Json out = Json::array();
  for (const NodeSpec* node : nodes) {
    const NodeSpec& n = *node;
    const auto found = machines.find(n.name);
    const HardwareFacts* facts = found == machines.end() ? nullptr : found->second;
    if (!facts && (!n.hardware.cpus || n.hardware.memory_bytes_min <= 0)) continue;
    const int64_t memory_mib =
        facts ? memory_for_jobs_mib(*facts) : n.hardware.memory_bytes_min / 100 * kForJobs >> 20;
    const std::vector<GpuFacts> found_gpus = facts ? facts->gpus : std::vector<GpuFacts>();
    const int gpus = gpus_for_jobs(spec, n, facts, with_driver.count(n.name) > 0);
    Json one = name_and_address(n);
    one.update({{"role", n.role},
                {"cpus", std::max(1, facts ? facts->cpus.count : *n.hardware.cpus)},
                {"memory_mib", memory_mib},
                {"gpus", gpus},
                {"gpu_files", gpu_files(gpus)},
                {"gpu_type", gpu_type_of(n.hardware.gpu_model, found_gpus)},
                {"simulated_gpus", facts && simulated_gpus(*facts) > 0}});
    out.push_back(std::move(one));
  }
  return out;
}

// By the spec's declaration: a node that lost its GPUs is still a GPU node.
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

}  // namespace

Json name_and_address(const NodeSpec& n) { return {{"name", n.name}, {"address", n.address}}; }

int NodeSet::place_of(const NodeName& node) const {
  const auto at = std::lower_bound(members.begin(), members.end(), node,
                                   [](const NodeSpec* n, const NodeName& name) { return n->name < name; });
  return at != members.end() && (*at)->name == node ? static_cast<int>(at - members.begin()) : -1;
}

SharedText NodeSet::text_without(const NodeSpec& node) const {
  const int at = place_of(node.name);
  if (at < 0) return SharedText(text_);
  const auto place = static_cast<size_t>(at);
  SharedText out;
  if (members.size() == 1) {
    out.add_literal("[]");
  } else if (place == 0) {
    out.add_literal("[");
    out.add(text_, begins_[1], text_->size());
  } else {
    out.add(text_, 0, begins_[place] - 1);  // without the comma
    out.add(text_, begins_[place + 1] - 1, text_->size());
  }
  return out;
}

SharedText NodeSet::text_of(const std::vector<int>& places) const {
  std::string out;
  for (const int i : places) {
    const auto place = static_cast<size_t>(i);
    out += out.empty() ? "[" : ",";
    out.append(*text_, begins_[place], begins_[place + 1] - 1 - begins_[place]);
  }
  return SharedText(out.empty() ? "[]" : out + "]");
}

ClusterContext::ClusterContext(const Spec& spec, const std::map<std::string, const HardwareFacts*>& machines,
                               const std::set<std::string>& with_driver)
    : spec_(spec), machines_(machines), with_driver_(with_driver) {
  std::string hosts;
  for (const auto& n : spec.nodes) hosts += n.address + " " + n.name + "\n";
  hosts_ = std::move(hosts);
}

NodeSet& ClusterContext::set_of(std::vector<const NodeSpec*> members) {
  std::sort(members.begin(), members.end(),
            [](const NodeSpec* a, const NodeSpec* b) { return a->name < b->name; });
  auto& set = sets_[members];
  if (set) return *set;
  set = std::make_unique<NodeSet>();
  set->nodes = set->gpu_fleet = Json::array();
  Json ring = Json::array();
  std::string text = "[";
  for (const NodeSpec* n : members) {
    set->nodes.push_back({{"name", n->name}, {"address", n->address}, {"role", n->role}});
    ring.push_back(name_and_address(*n));
    set->begins_.push_back(text.size());
    text += dump_json(set->nodes.back()) + ",";
  }
  set->begins_.push_back(text.size());
  if (members.empty()) text += ",";
  text.back() = ']';
  set->text_ = std::make_shared<const std::string>(std::move(text));
  set->ring = std::make_shared<const std::string>(dump_json(ring));
  set->machines = machines_of(spec_, members, machines_, with_driver_);
  set->gpu_nodes = gpu_nodes_of(spec_, set->machines);
  if (set->gpu_nodes.size() > 1) set->gpu_fleet = set->gpu_nodes;
  for (const auto& m : set->machines) set->has_gpus = set->has_gpus || m["gpus"] > 0;
  for (const auto& m : set->gpu_nodes) {
    const int64_t gpus = m["gpus"].get<int64_t>();
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
  // Only Slurm's leader can lead accounting: if it lacks that playbook, no node does.
  if (!set.members.empty() && (playbook != "accounting" || !among.empty())) take(set.members.front());
  return views_[key] = view;
}

NodeSet* ClusterContext::of_section(const std::string& name) {
  if (const auto known = sections_.find(name); known != sections_.end()) return known->second;
  NodeSet* found = nullptr;
  for (const auto& s : spec_.storage) {
    if (s.name != name || engine_of(s).reach == Reach::own) continue;
    std::vector<const NodeSpec*> members;
    for (const auto& n : spec_.nodes)
      if (mounts(s, n)) members.push_back(&n);
    found = &set_of(std::move(members));
  }
  return sections_[name] = found;
}

SharedSection& ClusterContext::shared_section(const StorageSpec& s) {
  if (const auto known = shared_sections_.find(&s); known != shared_sections_.end()) return known->second;
  SharedSection section{SectionNetwork(spec_, s), storage_leader(spec_, s), false, {}};
  Json members = Json::array();
  for (const auto& n : spec_.nodes) {
    if (is_member(s, n)) members.push_back({{"name", n.name}, {"address", section.network.address(n)}});
    const auto seen = machines_.find(n.name);
    section.holds_data =
        section.holds_data || (seen != machines_.end() && holds_our_data(spec_, n, s, *seen->second));
  }
  section.members = {members, members};
  return shared_sections_.emplace(&s, std::move(section)).first->second;
}

}  // namespace muster
