// Nodes at work whose agents say which root slot they run from, and an image that takes itself back.
#pragma once

#include "tests/unit/plan/fixture.h"

namespace muster::testing {

inline std::string installed_cidr(const PlannerInput& in, const std::string& node) {
  return in.spec.node(node)->address + "/24";
}

inline void put_to_work(PlannerInput& in, const std::string& node) {
  NodeObservation& seen = in.nodes[node];
  seen.state = NodeState::accepted;
  seen.slot = "a";
  BootFacts& boot = seen.facts->boot;
  boot.running = boot.standing = "a";
  boot.slots["a"] = {"cpu", "sha256:cpu", "written", installed_cidr(in, node), true};
  boot.slots["b"] = {};
  for (auto& part : seen.facts->disks[0].partitions) part.size_bytes = 16ull << 30;
}

// All nodes accepted in slot a, and nothing was ever written to slot b.
inline PlannerInput at_work() {
  PlannerInput in = with_nodes(installed);
  in.images["cpu"].trial = true;
  in.programs = {{"/usr/sbin/muster-agent", "sha256:agent", 1000, 0755}};
  for (const auto& n : in.spec.nodes) put_to_work(in, n.name);
  return in;
}

// node04 and node05 as well.
inline PlannerInput five_at_work() {
  PlannerInput in = at_work();
  for (const std::string number : {"4", "5"}) {
    NodeSpec node = in.spec.nodes.back();
    node.name = NodeName("node0" + number);
    node.mac = "52:54:00:20:00:0" + number;
    node.address = "10.20.0.20" + number;
    node.power.address = "10.20.1.1" + number;
    in.spec.nodes.push_back(node);
    in.nodes[node.name] = installed(node.name);
    put_to_work(in, node.name);
  }
  return in;
}

// As they are when image `cpu` was rebuilt since.
inline PlannerInput rebuilt_since() {
  PlannerInput in = at_work();
  in.images["cpu"].digest = "sha256:new";
  return in;
}

// Also slot b of the node: written once, with what its image was before.
inline void fill_other_slot(PlannerInput& in, const std::string& node) {
  in.nodes[node].facts->boot.slots["b"] = {"cpu", "sha256:before", "written", installed_cidr(in, node), true};
}

inline void add_pauses(PlannerInput& in) {
  for (const std::string name : {"base", "shared"})
    for (const std::string phase : {"pause", "resume"})
      in.playbooks[name].steps.push_back(
          step(phase, phase, {{"deadline_seconds", "{{drain_timeout_seconds}}"}}));
}

inline std::vector<std::string> ids_of(const Plan& plan, const std::string& node, bool when_failed) {
  std::vector<std::string> out;
  for (const auto& a : plan.actions)
    if (a.node == node && a.when_failed == when_failed) out.push_back(a.id.substr(node.size() + 1));
  return out;
}

// The rules of its refusals, once each; "error" where the input is wrong.
inline std::set<std::string> refusals_of(const PlannerInput& in) {
  const auto made = make_plan(in);
  if (!made.ok()) return {"error"};
  std::set<std::string> out;
  for (const auto& r : made->refusals) out.insert(r.rule);
  return out;
}

inline bool has_note(const Plan& plan, const std::string& words) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

// What has ended, or failed for good, before this action begins.
inline std::set<std::string> all_before(const Plan& plan, const std::string& id) {
  std::set<std::string> out;
  std::vector<std::string> open = {id};
  const auto take = [&](const std::string& next) {
    if (out.insert(next).second) open.push_back(next);
  };
  while (!open.empty()) {
    const Action* a = plan.find(open.back());
    open.pop_back();
    REQUIRE(a);
    for (const auto& d : a->after) take(d.action);
    if (a->behind >= 0)
      for (const auto& member : plan.barriers.at(static_cast<size_t>(a->behind))) take(member);
  }
  return out;
}

}  // namespace muster::testing
