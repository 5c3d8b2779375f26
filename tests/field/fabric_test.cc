// The step that finds out whether a node's GPUs are in their NVSwitch fabric (playbook gpu-vendor), run by a
// shell over answers of nvidia-smi; lspci and systemctl are stand-ins.
#include <filesystem>

#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/field/case.h"
#include "tests/unit/plan/reference_step.h"

namespace muster::tests {

namespace fs = std::filesystem;
using namespace muster::testing;

namespace {

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
  const auto command =
      reference_step("gpu-vendor/fabric")["params"]["command"].get<std::vector<std::string>>();
  const auto run =
      make_process()->run({.argv = command, .env = {{"PATH", dir.path("bin") + ":/usr/bin:/bin"}}});
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
