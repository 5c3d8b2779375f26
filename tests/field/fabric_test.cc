// The step that finds out whether a node's GPUs are in their NVSwitch fabric (playbook gpu-vendor), run by a
// shell over answers of nvidia-smi; lspci and systemctl are stand-ins.
#include <filesystem>

#include "base/os.h"
#include "base/standin.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

namespace muster::tests {

namespace fs = std::filesystem;
using namespace muster::testing;

namespace {

// As hgx01 of the small reference cluster, which has two GPUs, gets it.
std::vector<std::string> planned_command() {
  PlannerInput in =
      shipped_input(replaced(text_of(source_dir() + "/lab/hgx.yaml"), "\"ssh-ed25519 LAB_SSH_KEY lab\"",
                             "\"" + std::string(kKey) + "\""));
  in.lab = true;
  for (const char* node : {"hgx01", "hgx02"}) in.nodes[node].facts->gpus = standin_facts({2}, "abcd");
  const Plan plan = planned_of(in);
  for (const auto& action : plan.actions)
    if (action.node == "hgx01" && action.params.is_object())
      for (const auto& step : action.params.value("steps", Json::array()))
        if (step["id"].get<std::string>().rfind("gpu-vendor/fabric", 0) == 0)
          return step["params"]["command"].get<std::vector<std::string>>();
  FAIL("no step gpu-vendor/fabric");
  return {};
}

// Whether the step holds when nvidia-smi says this of the two GPUs, on a board with NVSwitches or without.
bool holds(const std::string& first, const std::string& second, bool switches = true) {
  const TempDir dir;
  fs::create_directories(dir.path("bin"));
  const auto program = [&](const std::string& name, const std::string& text) {
    dir.write("bin/" + name, "#!/bin/sh\n" + text);
    fs::permissions(dir.path("bin/" + name), fs::perms::owner_all);
  };
  dir.write("said", first + second);
  program("nvidia-smi", "cat " + dir.path("said") + "\n");
  program("lspci", switches ? "echo '07:00.0 0680: 10de:22a3 (rev a1)'\n" : "exit 0\n");
  program("systemctl", "exit 0\n");
  const auto run =
      make_process()->run({.argv = planned_command(), .env = {{"PATH", dir.path("bin") + ":/usr/bin:/bin"}}});
  REQUIRE(run.ok());
  return run->exit_code == 0;
}

std::string healthy() { return field_input("fabric-health-unhealthy", "healthy.txt"); }

}  // namespace

FIELD_CASE("fabric-health-unhealthy") {
  CHECK(holds(healthy(), healthy()));
  CHECK(holds(healthy(), field_input("fabric-health-unhealthy", "older.txt")));  // says nothing of its health
  for (const char* file : {"unhealthy.txt", "limited.txt", "misconfigured.txt", "degraded.txt"}) {
    INFO(file);
    const std::string sick = field_input("fabric-health-unhealthy", file);
    CHECK_FALSE(holds(healthy(), sick));
    CHECK_FALSE(holds(sick, healthy()));
  }
}

FIELD_CASE("fabric-health-not-told") {
  CHECK(holds(healthy(), field_input("fabric-health-not-told", "input.txt")));
}

FIELD_CASE("fabric-not-started") {
  CHECK_FALSE(holds(healthy(), field_input("fabric-not-started", "input.txt")));
  CHECK_FALSE(holds(healthy(), field_input("fabric-not-started", "error.txt")));
}

FIELD_CASE("fabric-none") {
  const std::string none = field_input("fabric-none", "input.txt");
  CHECK(holds(none, none, false));
  CHECK_FALSE(holds(none, none));  // with NVSwitches they have to be in it
}

}  // namespace muster::tests
