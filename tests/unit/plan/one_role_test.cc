// What a cluster whose nodes all have one role gets, step by step: the plans of several such specs, with the
// playbooks that are shipped, as one line for each action and each rendered step. A change in how nodes are
// chosen for a playbook must not show up here; a change of a playbook does, in its own lines.
// MUSTER_ACCEPT=1 rewrites the file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/digest.h"
#include "base/json_dump.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/shipped.h"

using namespace muster;
using namespace muster::testing;

namespace {

std::string spec_text(int nodes, const std::string& playbooks, const std::string& storage,
                      const std::string& profile, const std::string& hardware) {
  std::string macs;
  for (int i = 1; i <= nodes; ++i) macs += fmt::format("{}\"52:54:00:20:00:0{}\"", i > 1 ? ", " : "", i);
  return fmt::format(R"(cluster: gaggle
network:
  provisioning: {{ cidr: 10.20.0.0/24, dhcp: managed }}
  storage: {{ cidr: 10.21.0.0/24 }}
  bmc: {{ cidr: 10.20.1.0/24 }}
users:
  ops: {{ keys: [ "{}" ], sudo: true }}
images:
  cpu: {{ recipe: debian-12, kernel: cloud, bake: [ base ] }}
nodes:
  - name: node[01-{:02}]
    role: cpu
    power: {{ driver: redfish, address: "10.20.1.1{{n}}", secret: bmc }}
    mac: [ {} ]
    image: cpu
    hardware: {{ cpus: 4, memory: ">= 8 GiB"{} }}
    disks:
      os:   {{ match: {{ serial: "OS*", count: 1 }} }}
      fast: {{ match: {{ serial: "FAST*", size: 2 GiB, count: 2 }}, policy: format-if-blank }}
      bulk: {{ match: {{ serial: "BULK*", count: 1 }}, policy: format-if-blank }}
      home: {{ match: {{ serial: "HOME*", count: 1 }}, policy: format-if-blank }}
{}roles:
  cpu: {{ playbooks: [ {} ] }}
acceptance: {{ profile: {} }}
)",
                     kKey, nodes, macs, hardware, storage, playbooks, profile);
}

constexpr const char* kAll =
    "base, ssh, firewall, storage-local, storage-shared, storage-nfs, mpi, hpc, accounting, scheduler, "
    "monitoring, tools, apptainer";
constexpr const char* kStorage =
    "storage:\n"
    "  scratch: { engine: local, disks: fast, level: raid0, fs: xfs, mount: /scratch }\n"
    "  shared: { engine: moosefs, disks: bulk, copies: 2, mount: /shared }\n"
    "  home: { engine: nfs, server: node02, disks: home, mount: /home/shared }\n";
constexpr const char* kCephRole =
    "storage:\n  shared: { engine: ceph, disks: bulk, copies: 2, mount: /shared }\n";

std::string short_digest(const Json& value) { return sha256(dump_ascii(value)).substr(7, 16); }

// The digest of everything of an action but its steps, and those of its steps.
std::string lines_of(const std::string& spec, const Plan& plan) {
  std::string out;
  const Json whole = to_json(plan);
  for (const Json& action : whole["actions"]) {
    Json rest = action;
    if (rest["params"].contains("steps")) rest["params"].erase("steps");
    out += fmt::format("{} {} {}\n", spec, action["id"].get<std::string>(), short_digest(rest));
    for (const Json& step : action["params"].value("steps", Json::array()))
      out += fmt::format("{}   {} {}\n", spec, step["id"].get<std::string>(), short_digest(step));
  }
  Json rest = whole;
  rest.erase("actions");
  return out + fmt::format("{} plan {}\n", spec, short_digest(rest));
}

std::string lines_of(const std::string& name, const std::string& text) {
  PlannerInput in = shipped_input(text);
  in.lab = true;
  std::string out = lines_of(name, planned_of(in));
  // Running already, for what only drains and what looks again.
  for (const auto& node : in.spec.nodes) make_installed(in, node.name);
  in.request.kind = RequestKind::accept;
  out += lines_of(name + "/accept", planned_of(in));
  return out;
}

}  // namespace

TEST_CASE("clusters of one role: every rendered step is what it was", "[plan][roles]") {
  std::string with_key = text_of(source_dir() + "/lab/quickstart.yaml");
  with_key.replace(with_key.find("ssh-ed25519 LAB_SSH_KEY lab"), 27, kKey);
  const std::string gpus = ", gpus: 8";
  std::string now = lines_of("quickstart", with_key);
  now += lines_of("stack", spec_text(3, kAll, kStorage, "standard", ""));
  now += lines_of("ceph", spec_text(4, "base, ssh, firewall, storage-ceph, mpi", kCephRole, "quick", ""));
  now += lines_of(
      "gpu", spec_text(3, "base, ssh, firewall, mpi, interconnect, scheduler, monitoring", "", "burn", gpus));
  now += lines_of("one", spec_text(1, "base, ssh, firewall, mpi, scheduler, monitoring", "", "standard", ""));
  now += lines_of("without-mpi", spec_text(2, "base, ssh, firewall, monitoring", "", "lab-compare", ""));
  const std::string path = source_dir() + "/tests/golden/plan/one-role.txt";
  if (std::getenv("MUSTER_ACCEPT")) std::ofstream(path) << now;
  std::istringstream was(text_of(path)), is(now);
  std::vector<std::string> differing;
  for (std::string a, b; bool(std::getline(was, a)) | bool(std::getline(is, b)); a.clear(), b.clear())
    if (a != b && differing.size() < 12) differing.push_back("was: " + a + "\n is: " + b);
  CAPTURE(differing);
  CHECK(differing.empty());
}
