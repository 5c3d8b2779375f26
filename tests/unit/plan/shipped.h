// A planner's input from the text of a spec: the playbooks that are shipped, and machines that have just what
// the spec declares.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "controller/plan/planner.h"
#include "controller/spec/reader/parse_playbook.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

namespace muster::testing {

inline const char* kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W ops";

inline std::map<std::string, Playbook> shipped_playbooks() {
  static const std::map<std::string, Playbook> all = [] {
    std::map<std::string, Playbook> found;
    const std::string root = source_dir() + "/playbooks/";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.path().extension() != ".yaml") continue;
      auto parsed = parse_playbook(text_of(entry.path()));
      REQUIRE(parsed.errors.empty());
      found[entry.path().lexically_relative(root).replace_extension().string()] = parsed.playbook;
    }
    return found;
  }();
  return all;
}

inline std::vector<DiskFacts> disks_of(const NodeSpec& node) {
  std::vector<DiskFacts> out;
  for (const auto& [name, group] : node.disks)
    for (int i = 0; i < group.match.count; ++i) {
      DiskFacts d;
      d.serial = group.match.serial.value_or("S" + name + "*");
      d.serial.replace(d.serial.find('*'), 1, fmt::format("-{}-{}", node.name, i));
      d.wwid = "eui." + d.serial;
      d.model = group.match.model.value_or("TEST DISK");
      std::replace(d.model.begin(), d.model.end(), '*', '1');
      d.size_bytes = static_cast<uint64_t>(group.match.size_bytes.value_or(8ll << 30));
      d.transport = "nvme";
      d.name = "nvme" + d.serial;
      d.blank = true;
      d.content = "blank";
      d.content_hash = "sha256:blank-" + d.serial;
      out.push_back(d);
    }
  return out;
}

inline PlannerInput shipped_input(const std::string& spec) {
  PlannerInput in;
  auto parsed = parse_spec(spec);
  for (const auto& e : parsed.errors) UNSCOPED_INFO(to_string(e, "spec"));
  REQUIRE(parsed.errors.empty());
  in.spec = parsed.spec;
  in.revision = 7;
  in.authority = "sha256:ca-of-the-test";
  in.playbooks = shipped_playbooks();
  in.public_values["mpi_ssh_key"] = "ssh-ed25519 AAAA mpi";
  in.public_values["ceph_client_key"] = "AAAA";
  for (const auto& [name, image] : in.spec.images)
    in.images[name] = {"sha256:" + name, "/images/" + name + "/manifest.json"};
  for (const auto& node : in.spec.nodes) {
    NodeObservation seen;
    HardwareFacts facts;
    facts.system.uuid = "uuid-" + node.name;
    facts.cpus.count = node.hardware.cpus.value_or(1);
    facts.memory_bytes =
        std::max<uint64_t>(8ull << 30, static_cast<uint64_t>(node.hardware.memory_bytes_min));
    facts.gpus.resize(static_cast<size_t>(node.hardware.gpus.value_or(0)));
    facts.disks = disks_of(node);
    seen.facts = facts;
    seen.mode = wire::Mode::ram;
    seen.online = true;
    seen.state = NodeState::discovered;
    seen.product_uuid = facts.system.uuid;
    in.nodes[node.name] = seen;
  }
  return in;
}

inline void make_installed(PlannerInput& in, const std::string& node) {
  NodeObservation& seen = in.nodes[node];
  seen.mode = wire::Mode::installed;
  seen.state = NodeState::accepted;
  seen.image_digest = in.images.begin()->second.digest;
}

inline Plan planned_of(const PlannerInput& in) {
  auto made = make_plan(in);
  if (!made.ok()) FAIL(made.error().message);
  for (const auto& r : made->refusals) FAIL(r.node << " " << r.rule << ": " << r.message);
  return made->plan;
}

}  // namespace muster::testing
