// Declared hardware held against what was found, before anything is installed.
#include "controller/spec/hardware.h"

#include <algorithm>

#include "controller/plan/planner.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

constexpr uint64_t kGiB = 1ull << 30;

PlannerInput declared() {
  PlannerInput in = with_nodes(seen_in_ram);
  for (auto& node : in.spec.nodes) {
    node.hardware.cpus = 64;
    node.hardware.memory_bytes_min = static_cast<int64_t>(256 * kGiB);
  }
  for (auto& [name, seen] : in.nodes) {
    seen.facts->cpus.count = 64;
    seen.facts->memory_bytes = 253 * kGiB;  // firmware keeps some
  }
  return in;
}

NodeSpec& node_of(PlannerInput& in, const std::string& name) {
  return *std::find_if(in.spec.nodes.begin(), in.spec.nodes.end(),
                       [&](const NodeSpec& n) { return n.name == name; });
}

GpuFacts gpu(const std::string& pci, const std::string& model) {
  GpuFacts out;
  out.pci = pci;
  out.model = model;
  return out;
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::count(list.begin(), list.end(), name) > 0;
}

}  // namespace

TEST_CASE("what is declared is compared, what is unknown is not", "[plan][hardware]") {
  HardwareSpec spec;
  HardwareFacts facts;
  CHECK(unlike_hardware(spec, facts, false).empty());
  spec.cpus = 64;
  spec.memory_bytes_min = static_cast<int64_t>(64 * kGiB);
  CHECK(unlike_hardware(spec, facts, false).empty());  // the agent could read neither
  facts.cpus.count = 63;
  facts.memory_bytes = 62 * kGiB;  // one of 32 modules is gone
  CHECK(unlike_hardware(spec, facts, false).size() == 2);
  facts.cpus.count = 64;
  facts.memory_bytes = static_cast<uint64_t>(least_memory(spec.memory_bytes_min)) + 1;
  CHECK(unlike_hardware(spec, facts, false).empty());

  spec.gpus = 2;
  spec.gpu_model = "*H100*";
  CHECK(unlike_hardware(spec, facts, false).size() == 1);
  CHECK(unlike_hardware(spec, facts, true).empty());  // a lab
  facts.gpus = {gpu("0000:17:00.0", "10de:2330"), gpu("0000:3d:00.0", "10de:2330")};
  CHECK(unlike_hardware(spec, facts, false).empty());  // no driver has named them yet
  facts.gpus[1].model = "NVIDIA A100-SXM4-80GB";
  CHECK(unlike_hardware(spec, facts, false).size() == 1);
  facts.gpus.push_back(gpu("0000:5e:00.0", "NVIDIA H100 80GB HBM3"));
  CHECK(unlike_hardware(spec, facts, false).size() == 2);
  spec.gpus = 0;
  spec.gpu_model.clear();
  CHECK(unlike_hardware(spec, facts, false).size() == 1);
}

TEST_CASE("the processors' model and the number of network ports are compared", "[plan][hardware]") {
  HardwareSpec spec;
  HardwareFacts facts;
  spec.cpu_model = "Intel*Platinum 8480*";
  spec.nics = {{"any", 2}};
  CHECK(unlike_hardware(spec, facts, false).empty());  // the agent could read neither
  facts.cpus.model = "Intel(R) Xeon(R) Platinum 8480C";
  facts.nics.resize(2);  // none has a link: what is not up in the RAM system has none
  CHECK(unlike_hardware(spec, facts, false).empty());
  facts.nics.resize(3);
  CHECK(unlike_hardware(spec, facts, false).empty());
  facts.nics.resize(1);
  CHECK(unlike_hardware(spec, facts, false).size() == 1);
  facts.cpus.model = "Intel(R) Xeon(R) Gold 6430";
  CHECK(unlike_hardware(spec, facts, false).size() == 2);
  CHECK(unlike_hardware(spec, facts, true).size() == 2);  // a lab's machines have both
  spec.nics = {{"any", 0}};
  spec.cpu_model.clear();
  CHECK(unlike_hardware(spec, facts, false).empty());

  PlannerInput in = declared();
  for (auto& node : in.spec.nodes) node.hardware.cpu_model = "AMD EPYC 9654*";
  for (auto& [name, seen] : in.nodes) seen.facts->cpus.model = "AMD EPYC 9654 96-Core Processor";
  CHECK(planned(in).left_out.empty());
  in.nodes["node02"].facts->cpus.model = "AMD EPYC 9354 32-Core Processor";
  CHECK(planned(in).left_out_rules == std::map<std::string, std::string>{{"node02", "hardware-unlike"}});
}

TEST_CASE("a machine unlike the one that was ordered is left out, and the others are installed",
          "[plan][hardware]") {
  PlannerInput in = declared();
  CHECK(planned(in).nodes.size() == 3);
  in.nodes["node02"].facts->memory_bytes = 128 * kGiB;
  in.nodes["node02"].facts->disks.clear();  // nothing of it holds the others, its disks neither
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::install);
  CHECK(plan.nodes == std::vector<std::string>{"node01", "node03"});
  CHECK(has(plan.left_out, "node02"));
  CHECK(plan.left_out_rules == std::map<std::string, std::string>{{"node02", "hardware-unlike"}});
  CHECK(plan_from_json(to_json(plan)).value().left_out_rules == plan.left_out_rules);
  for (const auto& action : plan.actions) CHECK(action.node != "node02");
  for (const auto& lost : plan.destroys) CHECK(lost.node != "node02");
}

TEST_CASE("named it is refused, and forced it is installed", "[plan][hardware]") {
  for (const RequestKind kind : {RequestKind::up, RequestKind::reimage, RequestKind::admit}) {
    PlannerInput in = declared();
    in.nodes["node02"].facts->cpus.count = 32;
    in.request.kind = kind;
    in.request.nodes = {"node02"};
    auto made = make_plan(in);
    REQUIRE(made.ok());
    REQUIRE(made->refusals.size() == 1);
    CHECK(made->refusals[0].node == "node02");
    CHECK(made->refusals[0].rule == "hardware-unlike");
    in.request.force = {"node02"};
    const Plan forced = planned(in);
    CHECK(forced.find("node02/image") != nullptr);
    CHECK(std::any_of(forced.notes.begin(), forced.notes.end(), [](const std::string& note) {
      return note.find("node02") == 0 && note.find("32 found") != std::string::npos;
    }));
  }
}

TEST_CASE("nothing is compared before the inventory, nor of what is installed already", "[plan][hardware]") {
  PlannerInput in = declared();
  in.nodes.clear();
  CHECK(planned(in).kind == PlanKind::discover);
  CHECK(planned(in).nodes.size() == 3);

  in = with_nodes(installed);
  node_of(in, "node02").hardware.cpus = 64;
  in.nodes["node02"].facts->cpus.count = 32;
  const Plan apply = planned(in);  // its acceptance measures it, and quarantines it
  CHECK(apply.kind == PlanKind::apply);
  CHECK(has(apply.nodes, "node02"));
  CHECK(apply.left_out.empty());
  in.images["cpu"].digest = "sha256:newer";
  CHECK(has(planned(in).left_out, "node02"));
}

TEST_CASE("when all are unlike, nothing is planned and all are named", "[plan][hardware]") {
  PlannerInput in = declared();
  for (auto& [name, seen] : in.nodes) seen.facts->cpus.count = 2;
  const Plan plan = planned(in);
  CHECK(plan.empty());
  CHECK(plan.left_out.size() == 3);
}
