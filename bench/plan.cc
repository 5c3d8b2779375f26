// How long a plan takes to make, and how large it is, for clusters of several sizes: all nodes in the RAM
// system, with the playbooks and the acceptance that are shipped. Closes with one line of JSON.
// usage: muster-bench-plan NODES...      300: one role; 300r: four roles, each with other playbooks
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>

#include "base/json_dump.h"
#include "base/os.h"
#include "controller/plan/lint.h"
#include "controller/plan/planner.h"
#include "controller/spec/spec.h"

namespace muster {
namespace {

constexpr const char* kPlaybooks[] = {"base", "ssh", "firewall", "mpi", "interconnect"};

Spec cluster_of(int nodes, bool roles) {
  std::string macs;
  for (int i = 1; i <= nodes; ++i)
    macs += fmt::format("{}\"52:54:00:20:{:02x}:{:02x}\"", i == 1 ? "" : ", ", i / 256, i % 256);
  const ParsedSpec parsed = parse_spec(fmt::format(R"(cluster: bench
network:
  provisioning: {{ cidr: 10.20.0.0/16, dhcp: managed }}
users:
  ops: {{ keys: [ "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W0oWKm6pJ0W ops" ], sudo: true }}
images:
  cpu: {{ recipe: debian-12, kernel: cloud, bake: [ base ] }}
nodes:
  - name: node[0001-{:04}]
    role: cpu
    power: {{ driver: redfish, address: "10.30.0.1:{{n}}", secret: bmc }}
    mac: [ {} ]
    image: cpu
    disks: {{ os: {{ match: {{ serial: "OS*", count: 1 }} }} }}
roles:
  cpu: {{ playbooks: [ base, ssh, firewall, mpi, interconnect ] }}
  b: {{ playbooks: [ base, ssh, firewall, mpi ] }}
  c: {{ playbooks: [ base, ssh, mpi ] }}
  d: {{ playbooks: [ base, firewall ] }}
acceptance: {{ profile: standard }}
)",
                                                   nodes, macs));
  for (const auto& error : parsed.errors) fmt::print(stderr, "{}\n", to_string(error, "spec"));
  if (!parsed.errors.empty()) std::exit(1);
  Spec spec = parsed.spec;
  const char* const names[] = {"cpu", "b", "c", "d"};
  for (size_t i = 0; roles && i < spec.nodes.size(); ++i) spec.nodes[i].role = names[i % 4];
  return spec;
}

Playbook shipped(const std::string& name) {
  const auto text = Files().read("playbooks/" + name + ".yaml");
  auto parsed = parse_playbook(text.value_or(""));
  if (!text.ok() || !parsed.errors.empty())
    fmt::print(stderr, "playbooks/{}.yaml cannot be read\n", name), std::exit(1);
  return parsed.playbook;
}

NodeObservation seen(const std::string& node) {
  NodeObservation out;
  HardwareFacts facts;
  facts.system.uuid = "uuid-" + node;
  DiskFacts os;
  os.name = "nvme0n1";
  os.serial = "OS" + node;
  os.model = "BENCH";
  os.transport = "nvme";
  os.size_bytes = 1ull << 40;
  os.blank = true;
  os.content_hash = "sha256:blank";
  facts.disks = {os};
  out.facts = facts;
  out.mode = wire::Mode::ram;
  out.online = true;
  out.state = NodeState::discovered;
  out.product_uuid = facts.system.uuid;
  return out;
}

Json measure(int nodes, bool roles) {
  PlannerInput in;
  in.spec = cluster_of(nodes, roles);
  in.revision = 1;
  for (const char* name : kPlaybooks) in.playbooks[name] = shipped(name);
  in.playbooks["acceptance/standard"] = shipped("acceptance/standard");
  in.images["cpu"].digest = "sha256:cpu";
  in.public_values["mpi_ssh_key"] = "ssh-ed25519 AAAA mpi";
  in.controller_address = "10.20.0.1";
  for (const auto& node : in.spec.nodes) in.nodes[node.name] = seen(node.name);
  const auto began = std::chrono::steady_clock::now();
  const auto made = make_plan(in);
  const auto planned = std::chrono::steady_clock::now();
  if (!made.ok()) fmt::print(stderr, "{}\n", made.error().message), std::exit(1);
  for (const auto& refusal : made->refusals)
    fmt::print(stderr, "{} {}: {}\n", refusal.node, refusal.rule, refusal.message), std::exit(1);
  const auto problems = lint_plan(made->plan);
  for (const auto& problem : problems) fmt::print(stderr, "{}\n", problem), std::exit(1);
  const size_t bytes = dump_json(to_json(made->plan)).size();
  const auto written = std::chrono::steady_clock::now();
  const auto seconds = [](auto from, auto to) { return std::chrono::duration<double>(to - from).count(); };
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:5} nodes{}  {:8.2f} s to plan  {:8.2f} s to check and write  {:8.1f} MB  {} actions  {} MB resident "
      "at most\n",
      nodes, roles ? " of four roles" : "", seconds(began, planned), seconds(planned, written),
      static_cast<double>(bytes) / 1e6, made->plan.actions.size(), usage.ru_maxrss / 1024);
  std::fflush(stdout);
  return {{"nodes", nodes},
          {"roles", roles ? 4 : 1},
          {"plan_seconds", seconds(began, planned)},
          {"write_seconds", seconds(planned, written)},
          {"bytes", bytes},
          {"actions", made->plan.actions.size()},
          {"resident_mb", usage.ru_maxrss / 1024}};
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Json all = muster::Json::array();
  for (int i = 1; i < argc; ++i)
    all.push_back(muster::measure(std::atoi(argv[i]), std::string(argv[i]).back() == 'r'));
  fmt::print("{}\n", muster::dump_json(muster::Json{{"bench", "plan"}, {"sizes", all}}));
}
