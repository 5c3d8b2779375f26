// The GPUs that Slurm gets of a node: those that have, or will have, a driver. The others are said.
#include "controller/plan/gpus_for_jobs.h"

#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

GpuFacts card(const std::string& model, bool display = false) {
  GpuFacts gpu;
  gpu.model = model;
  gpu.display = display;
  return gpu;
}

// node02 has two cards of which the driver is not loaded, and runs, or waits for, the image "cpu".
PlannerInput with_cards(NodeObservation (*make)(const std::string&)) {
  PlannerInput in = with_nodes(make);
  in.nodes["node02"].facts->gpus = {card("10de:2330"), card("10de:2330")};
  in.playbooks["scheduler"] = {"scheduler", "", {step("slurm.conf", "node", {{"nodes", "{{machines}}"}})}};
  in.spec.roles["cpu"].push_back("scheduler");
  return in;
}

// How many GPUs of node02 slurm.conf of a node has.
int in_slurm(const Plan& plan, const std::string& on = "node02") {
  const Action* configure = plan.find(on + "/configure");
  REQUIRE(configure);
  for (const Json& step : configure->params["steps"])
    if (step["id"].get<std::string>().starts_with("scheduler/"))
      for (const Json& machine : step["params"]["nodes"])
        if (machine["name"] == "node02") return machine["gpus"].get<int>();
  FAIL("no slurm.conf");
  return -1;
}

}  // namespace

TEST_CASE("GPUs for jobs: a declaration, a playbook, the image, or a driver that was loaded", "[plan][gpu]") {
  Spec spec;
  spec.roles["head"] = {"scheduler"};
  spec.nodes.resize(1);
  spec.nodes[0].name = "head01";
  spec.nodes[0].role = "head";
  HardwareFacts facts;
  facts.gpus = {card("10de:2330"), card("10de:1fb9", true)};
  const auto jobs = [&](bool in_image = false) {
    return gpus_for_jobs(spec, spec.nodes[0], &facts, in_image);
  };
  CHECK(jobs() == 0);
  CHECK(jobs(true) == 1);  // not the display card
  CHECK(gpus_for_jobs(spec, spec.nodes[0], nullptr, true) == 0);
  SECTION("declared") {
    spec.nodes[0].hardware.gpus = 2;
    CHECK(jobs() == 2);
    CHECK(gpus_for_jobs(spec, spec.nodes[0], nullptr, false) == 2);
  }
  SECTION("a playbook") {
    spec.roles["head"].push_back(GENERATE(as<std::string>{}, "gpu", "gpu-vendor", "gpu-ubuntu"));
    CHECK(jobs() == 2);
  }
  SECTION("its driver was loaded") {
    facts.gpus[0].model = "NVIDIA H200";
    CHECK(jobs() == 2);
  }
  SECTION("a display card alone, with an image for all nodes") {
    facts.gpus.erase(facts.gpus.begin());
    CHECK(jobs(true) == 0);
  }
}

TEST_CASE("GPUs for jobs: at the first install, by the image that is written", "[plan][gpu]") {
  PlannerInput in = with_cards(seen_in_ram);
  CHECK(in_slurm(planned(in)) == 0);
  CHECK(has_note(planned(in), "node02 (2)"));
  in.images["cpu"].gpu_driver = "nvidia-open-kernel-dkms";
  CHECK(in_slurm(planned(in)) == 2);
  CHECK_FALSE(has_note(planned(in), "node02 (2)"));
}

TEST_CASE("GPUs for jobs: an installed node has the driver of the image that it runs", "[plan][gpu]") {
  PlannerInput in = with_cards(installed);
  in.images["cpu"] = {"sha256:new", "/images/cpu/sha256:new/manifest.json"};
  in.images["cpu"].gpu_driver = "nvidia-open-kernel-dkms";
  in.nodes["node02"].state = NodeState::accepted;
  in.request = {RequestKind::up, {"node02"}, {"node02"}};
  CHECK(in_slurm(planned(in)) == 0);  // it keeps the older build
  in.nodes["node02"].gpu_driver = "nvidia-kernel-dkms";
  CHECK(in_slurm(planned(in)) == 2);
  // It is re-imaged: what it runs now does not count.
  in.request = {RequestKind::reimage, {"node02"}, {"node02"}};
  CHECK(in_slurm(planned(in)) == 2);
  in.images["cpu"].gpu_driver.clear();
  CHECK(in_slurm(planned(in)) == 0);
}

TEST_CASE("GPUs for jobs: a node that is left out as unlike keeps the driver of its system, or none",
          "[plan][gpu]") {
  PlannerInput in = with_cards(seen_in_ram);
  in.spec.nodes[1].hardware.cpus = 64;
  in.nodes["node02"].facts->cpus.count = 32;
  REQUIRE(planned(in).left_out_rules.count("node02") == 1);
  in.images["cpu"].gpu_driver = "nvidia-open-kernel-dkms";
  CHECK(in_slurm(planned(in), "node01") == 0);
  in.images["cpu"].gpu_driver.clear();
  in.nodes["node02"].gpu_driver = "nvidia-open-kernel-dkms";
  CHECK(in_slurm(planned(in), "node01") == 2);
  // With --force it is installed.
  in.request = {RequestKind::up, {"node02"}, {"node02"}};
  CHECK(in_slurm(planned(in)) == 0);
}

TEST_CASE("GPUs for jobs: the note is for nodes of the scheduler, and not for display cards", "[plan][gpu]") {
  PlannerInput in = with_cards(seen_in_ram);
  SECTION("no scheduler") { in.spec.roles["cpu"].pop_back(); }
  SECTION("a display card") { in.nodes["node02"].facts->gpus = {card("10de:1fb9", true)}; }
  SECTION("declared") { in.spec.nodes[1].hardware.gpus = 2; }
  CHECK_FALSE(has_note(planned(in), "Slurm gets none"));
}

TEST_CASE("GPUs for jobs: workstation cards are of the class of displays: with a driver they get the note",
          "[plan][gpu]") {
  PlannerInput in = with_cards(seen_in_ram);
  in.nodes["node02"].facts->gpus = {card("10de:2230", true), card("10de:2230", true)};
  CHECK_FALSE(has_note(planned(in), "node02 (2)"));
  in.images["cpu"].gpu_driver = "nvidia-kernel-dkms";
  CHECK(has_note(planned(in), "node02 (2)"));
  in.nodes["node02"].facts->gpus[0].display = false;
  CHECK(in_slurm(planned(in)) == 1);
  CHECK_FALSE(has_note(planned(in), "Slurm gets none"));
}
