// lab/hgx.yaml, the reference cluster in small: the same five machines to the lab and to the controller, and
// a plan with everything that tests/e2e/hgx.sh looks at.
#include <filesystem>
#include <set>

#include "base/standin.h"
#include "controller/plan/lint.h"
#include "controller/spec/reader/parse_spec.h"
#include "lab/lab_spec.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::testing;

namespace {

// What the names of steps end with that are carried out for its GPUs.
const std::string kOfHgx01 = "[hgx01, SIMULATED GPU]";

std::string spec_text() {
  return replaced(text_of(source_dir() + "/lab/hgx.yaml"), "\"ssh-ed25519 LAB_SSH_KEY lab\"",
                  "\"" + std::string(kKey) + "\"");
}

// Machines as the lab's agents report them.
PlannerInput input_of(const std::string& text) {
  PlannerInput in = shipped_input(text);
  in.lab = true;
  for (auto& [name, seen] : in.nodes)
    if (name.starts_with("hgx")) seen.facts->gpus = standin_facts({2}, "abcd");
  return in;
}

std::map<std::string, Json> steps_of(const Plan& plan, const std::string& node) {
  std::map<std::string, Json> out;
  for (const auto& action : plan.actions)
    if (action.node == node && action.params.is_object() && action.params.contains("steps"))
      for (const auto& step : action.params["steps"]) out[step["id"].get<std::string>()] = step;
  return out;
}

}  // namespace

TEST_CASE("the small reference cluster: five machines in four roles, to the lab and to the controller",
          "[plan][lab][standin]") {
  const auto parsed = parse_spec(spec_text());
  for (const auto& e : parsed.errors) FAIL_CHECK(to_string(e, "lab/hgx.yaml"));
  const auto machines = lab::lab_spec_from_yaml(spec_text());
  if (!machines.ok()) FAIL(machines.error().message);
  REQUIRE(machines->nodes.size() == 5);
  std::set<std::string> roles;
  for (const auto& node : parsed.spec.nodes) {
    const auto* machine = lab::find_node(*machines, node.name);
    REQUIRE(machine);
    roles.insert(node.role);
    CHECK(machine->mac == node.mac);
    CHECK(machine->address == node.address);
    CHECK(machine->bmc_address == node.power.address);
    CHECK(machine->gpus == node.hardware.gpus.value_or(0));
    for (const auto& [name, group] : node.disks) {
      int64_t found = 0;
      for (const auto& drive : machine->drives)
        found += glob_match(group.match.serial.value_or(""), drive.serial) &&
                 drive.size_bytes == group.match.size_bytes;
      CAPTURE(node.name, name);
      CHECK(found == group.match.count);
    }
  }
  CHECK(roles.size() == 4);
  int64_t memory = 0, dark = 0;
  for (const auto& node : machines->nodes) {
    memory += node.memory_mib;
    for (const auto& port : node.ports) dark += !port.cabled;
  }
  CHECK(dark == 1);
  CHECK(memory <= 8 << 10);
}

TEST_CASE("the small reference cluster has a plan without an objection, which says SIMULATED GPU",
          "[plan][lab][standin]") {
  const PlannerInput in = input_of(spec_text());
  const Plan plan = planned_of(in);
  CHECK(plan.kind == PlanKind::install);
  CHECK(plan.nodes.size() == 5);
  CHECK(plan.simulated);
  const auto says = [&](const std::string& words) {
    return std::any_of(plan.notes.begin(), plan.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  CHECK(says("SIMULATED GPU: provided by the lab on hgx01 (2), hgx02 (2)"));
  CHECK_FALSE(says("left out"));

  const auto steps = steps_of(plan, "hgx01");
  const std::string slurm = steps.at("scheduler/configuration")["params"]["content"].get<std::string>();
  CHECK(slurm.find("SlurmctldHost=head01(") != std::string::npos);
  CHECK(slurm.find("NodeName=hgx01 ") != std::string::npos);
  CHECK(slurm.find(" Gres=gpu:h100:2 ") != std::string::npos);
  CHECK(slurm.find("NodeName=store01 ") == std::string::npos);
  const Json gres = steps.at("scheduler/gpus" + kOfHgx01)["params"];
  CHECK(gres["content"] ==
        "# Written by muster.\n# SIMULATED GPU: stood in for by the lab.\n"
        "Name=gpu Type=h100 File=/dev/nvidia[0-1]\n");
  CHECK(steps.at("gpu-vendor/devices for containers" + kOfHgx01)["params"]["gpus"] == 2);
  CHECK(steps.count("apptainer/GPUs in a container of an unprivileged user" + kOfHgx01) == 1);
  CHECK(steps.count("quick/gpu bf16") == 1);      // which the node then calls not applicable
  CHECK(steps.count("quick/gpu counters") == 1);  // which it reads
  const auto others = steps_of(plan, "head01");
  CHECK(others.count("quick/gpu bf16") == 0);
}

TEST_CASE(
    "the small reference cluster: DCGM is started and asked for every GPU, nvcc is in a login shell's PATH",
    "[plan][standin]") {
  // What the image has.
  std::map<std::string, PlaybookStep> baked;
  const auto playbooks = shipped_playbooks();
  for (const auto& step : playbooks.at("gpu-vendor").steps)
    if (step.phase == "image") baked[step.name] = step;
  const Json& enabled = baked.at("services").params["names"];
  CHECK(std::count(enabled.begin(), enabled.end(), "nvidia-dcgm") == 1);
  const Json& unit = baked.at("DCGM settings").params;
  CHECK(unit["path"] == "/etc/systemd/system/nvidia-dcgm.service.d/10-muster.conf");
  const Json& shells = baked.at("CUDA in the shells' PATH").params;
  CHECK(shells["path"] == "/etc/profile.d/muster-cuda.sh");

  // The steps of a node with GPUs.
  const auto steps = steps_of(planned_of(input_of(spec_text())), "hgx01");
  const Json dcgm = steps.at("gpu-vendor/DCGM" + kOfHgx01);
  CHECK(dcgm["params"]["names"] == Json::array({"nvidia-dcgm"}));
  CHECK(dcgm["params"]["enabled"] == true);
  CHECK(dcgm["verify"]["params"]["command"].dump().find("^2 GPUs? found") != std::string::npos);
  const Json nvcc = steps.at("gpu-vendor/CUDA's compiler in a login shell" + kOfHgx01)["params"]["command"];
  CHECK(nvcc[1] == "-lc");  // which reads /etc/profile.d
  CHECK(nvcc[2].get<std::string>().find("/usr/local/cuda/bin/nvcc") != std::string::npos);

  // That file in the shell that reads it: once, and only where there is a toolkit.
  const TempDir folder;
  const std::string cuda = folder.path("cuda/bin");
  std::string script = shells["content"].get<std::string>();
  const std::string real = "/usr/local/cuda/bin";
  for (size_t at = 0; (at = script.find(real, at)) != std::string::npos; at += cuda.size())
    script.replace(at, real.size(), cuda);
  const auto path_after = [&](const std::string& before) {
    auto process = make_process();
    const auto out =
        process->run({.argv = {"sh", "-c", "PATH=" + before + "\n" + script + "printf %s \"$PATH\""}});
    REQUIRE(out.ok());
    return out->out;
  };
  CHECK(path_after("/usr/bin:/bin") == "/usr/bin:/bin");
  std::filesystem::create_directories(cuda);
  CHECK(path_after("/usr/bin:/bin") == cuda + ":/usr/bin:/bin");
  CHECK(path_after(cuda + ":/bin") == cuda + ":/bin");
}

TEST_CASE("every limit that the small reference cluster sets is one of quick's or standard's",
          "[plan][lab][standin]") {
  for (const char* profile : {"quick", "standard"}) {
    const PlannerInput in =
        input_of(replaced(spec_text(), "profile: quick }", std::string("profile: ") + profile + " }"));
    const Plan plan = planned_of(in);
    std::string unknown;
    for (const auto& note : plan.notes)
      if (const size_t at = note.find("does not have: "); at != std::string::npos) unknown = note.substr(at);
    CAPTURE(profile, unknown);
    CHECK((unknown.find("rdma/") != std::string::npos) == (std::string(profile) == "quick"));
    CHECK(unknown.find("drives/") == std::string::npos);
    if (std::string(profile) == "standard") CHECK(unknown.empty());
  }
}

// A new check of a profile would else hold emulated processors to a floor for servers.
TEST_CASE("every speed that quick or standard requires of the small reference cluster is its lab's",
          "[plan][lab][standin]") {
  for (const char* profile : {"quick", "standard"}) {
    const Plan plan = planned_of(
        input_of(replaced(spec_text(), "profile: quick }", std::string("profile: ") + profile + " }")));
    size_t speeds = 0;
    for (const auto& node : plan.nodes)
      for (const auto& [id, step] : steps_of(plan, node)) {
        if (!step.contains("expect") || !step["expect"].is_object()) continue;
        for (const auto& [metric, limits] : step["expect"].items())
          for (const Json& limit : limits.is_array() ? limits : Json::array({limits})) {
            if (!limit.is_object() || !limit.value("unit", "").ends_with("/s")) continue;
            if (!limit.contains("min") && !limit.contains("degraded_below")) continue;
            CAPTURE(node, id, metric);
            CHECK(limit.value("set_by", "") == "lab");
            ++speeds;
          }
      }
    CHECK(speeds > 0);
  }
}

TEST_CASE("steps for a node's GPUs say SIMULATED GPU in their names, and of real GPUs nothing of the kind",
          "[plan][standin]") {
  PlannerInput in = input_of(spec_text());
  const auto named = [&](const std::string& words) {
    std::set<std::string> out;
    for (const auto& [id, step] : steps_of(planned_of(in), "hgx01"))
      if (id.find(words) != std::string::npos) out.insert(id.substr(0, id.find('[')));
    return out;
  };
  const auto simulated = named(kSimulatedGpu);
  CHECK(simulated.count("gpu-vendor/every GPU answers") == 1);
  CHECK(simulated.count("apptainer/GPUs in a container of an unprivileged user") == 1);
  CHECK(simulated.count("gpu-vendor/archive") == 0);
  for (auto& [name, seen] : in.nodes)
    for (auto& gpu : seen.facts->gpus) gpu.simulated = false, gpu.model = "NVIDIA H100 80GB HBM3";
  CHECK(named(kSimulatedGpu).empty());
  CHECK(named("[hgx01]").count("gpu-vendor/every GPU answers") == 1);
}

TEST_CASE("GPUs of unknown type are scheduled untyped", "[plan][standin]") {
  PlannerInput in = input_of(replaced(spec_text(), ", gpu_model: \"*H100*\"", ""));
  for (auto& [name, seen] : in.nodes)
    for (auto& gpu : seen.facts->gpus) gpu.model = "10de:ffff";
  const auto steps = steps_of(planned_of(in), "hgx01");
  const std::string slurm = steps.at("scheduler/configuration")["params"]["content"].get<std::string>();
  CHECK(slurm.find(" Gres=gpu:2 ") != std::string::npos);
  CHECK(steps.at("scheduler/gpus" + kOfHgx01)["params"]["content"] ==
        "# Written by muster.\n# SIMULATED GPU: stood in for by the lab.\nName=gpu File=/dev/nvidia[0-1]\n");
}
