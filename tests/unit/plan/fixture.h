// A small cluster for planner tests: spec and playbooks as text, nodes as they were seen.
#pragma once

#include <string>

#include "controller/plan/planner.h"
#include "controller/spec/reader/parse_spec.h"
#include "tests/catch.h"

namespace muster::testing {

inline const char* kSpec = R"(cluster: gaggle
network:
  provisioning: { cidr: 10.20.0.0/24, dhcp: managed }
  bmc: { cidr: 10.20.1.0/24 }
users:
  ops: { keys: [ "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W ops" ], sudo: true }
images:
  cpu: { recipe: debian-12, kernel: cloud, bake: [ base ] }
nodes:
  - name: node[01-03]
    role: cpu
    power: { driver: redfish, address: "10.20.1.1{n}", secret: bmc }
    mac: [ "52:54:00:20:00:01", "52:54:00:20:00:02", "52:54:00:20:00:03" ]
    image: cpu
    disks:
      os:   { match: { serial: "OS*", count: 1 } }
      fast: { match: { serial: "FAST*", size: 2 GiB, count: 2 }, policy: format-if-blank }
      bulk: { match: { serial: "BULK*", count: 1 }, policy: format-if-blank }
storage:
  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }
  shared:  { engine: moosefs, disks: bulk, nodes: { role: cpu }, copies: 2, mount: /shared }
roles:
  cpu: { playbooks: [ base, storage, shared ] }
acceptance: { profile: lab }
)";

inline const char* kAuthority = "sha256:ca-of-gaggle";

inline PlaybookStep step(const std::string& name, const std::string& phase, Json params, int stage = 1,
                         const std::string& on = "all") {
  PlaybookStep s;
  s.name = name;
  s.phase = phase;
  s.module = "file";
  s.params = std::move(params);
  s.stage = stage;
  s.on = on;
  return s;
}

inline std::map<std::string, Playbook> playbooks() {
  PlaybookStep array = step("array", "node", {{"name", "{{item.name}}"}, {"disks", "{{item.disks}}"}});
  array.for_each = "storage_local";
  PlaybookStep never = step("never", "node", {{"x", "y"}});
  never.when = "{{vars.enabled}}";
  PlaybookStep allreduce =
      step("all-reduce", "cluster", {{"hosts", "{{nodes}}"}, {"peers_live", true}}, 1, "leader");
  std::map<std::string, Playbook> all;
  all["base"] = {"base",
                 "",
                 {step("packages", "image", {{"names", Json::array({"chrony"})}}),
                  step("hostname", "node", {{"content", "{{node.name}}\n"}})}};
  all["storage"] = {"storage", "", {array}};
  all["shared"] = {"shared",
                   "",
                   {step("master", "cluster", {{"at", "{{leader.address}}"}}, 1, "leader"),
                    step("chunk", "cluster", {{"to", "{{leader.address}}"}}, 2)}};
  all["acceptance/lab"] = {"acceptance/lab", "", {step("dgemm", "node", {{"seconds", 1}}), allreduce}};
  all["optional"] = {"optional", "", {never}};
  return all;
}

inline DiskFacts disk(const std::string& serial, uint64_t size) {
  DiskFacts d;
  d.serial = serial;
  d.wwid = "eui." + serial;
  d.model = "TEST DISK";
  d.size_bytes = size;
  d.transport = "nvme";
  d.name = "nvme" + serial;
  d.blank = true;
  d.content = "blank";
  d.content_hash = "sha256:blank-" + serial;
  return d;
}

inline NodeObservation seen_in_ram(const std::string& node) {
  NodeObservation seen;
  HardwareFacts facts;
  facts.system.uuid = "uuid-" + node;
  facts.disks = {disk("OS" + node, 8ull << 30), disk("FASTa" + node, 2ull << 30),
                 disk("FASTb" + node, 2ull << 30), disk("BULK" + node, 2ull << 30)};
  seen.facts = facts;
  seen.mode = wire::Mode::ram;
  seen.online = true;
  seen.state = NodeState::discovered;
  seen.product_uuid = "uuid-" + node;
  return seen;
}

inline void make_ours(DiskFacts& os, const std::string& node) {
  os.muster_cluster = "gaggle";
  os.muster_node = node;
  os.muster_authority = kAuthority;
  os.blank = false;
  os.content = "GPT, muster";
  os.content_hash = "sha256:ours";
  for (const char* label : {"muster-esp", "muster-root-a", "muster-root-b", "muster-state"}) {
    PartitionFacts p;
    p.label = label;
    os.partitions.push_back(p);
  }
}

// As it is after an install: online in its installed system, all disks carry what muster made.
inline NodeObservation installed(const std::string& node) {
  NodeObservation seen = seen_in_ram(node);
  seen.mode = wire::Mode::installed;
  seen.image_digest = "sha256:cpu";
  auto& disks = seen.facts->disks;
  make_ours(disks[0], node);
  disks[0].mounted = disks[0].is_os_ancestor = true;
  for (size_t i = 1; i < 4; ++i) {
    disks[i].blank = false;
    disks[i].mounted = true;
    disks[i].content_hash = "sha256:used";
    disks[i].content = "in use";
  }
  disks[1].signatures = disks[2].signatures = {"linux_raid_member label=any:scratch uuid=1-2"};
  disks[3].signatures = {"xfs label=mfs-" + disks[3].serial.substr(disks[3].serial.size() - 8) + " uuid=3"};
  return seen;
}

inline PlannerInput input() {
  PlannerInput in;
  auto parsed = parse_spec(kSpec);
  for (const auto& e : parsed.errors) UNSCOPED_INFO(to_string(e, "spec"));
  REQUIRE(parsed.errors.empty());
  in.spec = parsed.spec;
  in.revision = 7;
  in.authority = kAuthority;
  in.lab = true;
  in.playbooks = playbooks();
  in.images["cpu"] = {"sha256:cpu", "/images/cpu/sha256:cpu/manifest.json"};
  return in;
}
inline PlannerInput with_nodes(NodeObservation (*make)(const std::string&)) {
  PlannerInput in = input();
  for (const auto& n : in.spec.nodes) in.nodes[n.name] = make(n.name);
  return in;
}
// As if the action had been planned so.
template <typename Change>
void change_params(Action& action, Change change) {
  Json params = action.params.json();
  change(params);
  action.params = std::move(params);
}

inline Plan planned(const PlannerInput& in) {
  auto made = make_plan(in);
  if (!made.ok()) FAIL(made.error().message);
  for (const auto& r : made->refusals) FAIL(r.node << " " << r.rule << ": " << r.message);
  return made->plan;
}

}  // namespace muster::testing
