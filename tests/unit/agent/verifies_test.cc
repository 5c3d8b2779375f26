// Every step of a shipped playbook that only writes down what is to be is followed, in its playbook, by one
// that looks at the running system, or says here why not. A configuration that is right in its file and not
// in force passes otherwise: the step compares what it wrote with what it wrote.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "agent/core/step.h"
#include "controller/spec/playbook.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/catch.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

// Their check is about what they put there themselves.
const std::set<std::string> kWritten = {"apt_repository",  "archive",      "config",    "directory",
                                        "docker_settings", "download",     "file",      "group",
                                        "limits",          "line",         "nccl_conf", "package",
                                        "subordinate_ids", "time_servers", "udev_rule", "user"};
// "playbook/step" -> who looks at the effect instead.
const std::map<std::string, std::string> kElsewhere = {
    {"base/account", "playbook ssh: who may log in, and the probe that passwords are refused"},
    {"mpi/account", "acceptance: mpirun as this user"},
    {"mpi/packages", "acceptance: an all-reduce over all nodes"},
    {"mpi/private key", "acceptance: mpirun over ssh with this key"},
    {"mpi/ssh settings", "acceptance: mpirun over ssh with these settings"},
    {"mpi/interfaces", "acceptance: an all-reduce, and its rate against that of the links"},
    {"mpi/hosts", "acceptance: an all-reduce over these hosts"},
};

bool only_writes(const PlaybookStep& step) {
  if (!step.verify.is_null()) return false;
  if (step.module == "command") return step.params.contains("creates");
  return kWritten.count(step.module) > 0;
}

// Whether a step says how the system is: its own check, or its verify, asks it.
bool looks(const PlaybookStep& step) {
  if (!step.verify.is_null()) return !kWritten.count(step.verify.value("module", ""));
  return !only_writes(step) && step.module != "not_applicable";
}

std::vector<Playbook> shipped() {
  std::vector<Playbook> out;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/playbooks")) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path());
    const auto parsed = parse_playbook({std::istreambuf_iterator<char>(file), {}});
    REQUIRE(parsed.errors.empty());
    out.push_back(parsed.playbook);
  }
  return out;
}

}  // namespace

TEST_CASE("what a shipped playbook writes down is looked at in the running system behind it", "[verifies]") {
  std::set<std::string> used;
  for (const Playbook& playbook : shipped()) {
    // Image steps come first, drain and undrain are apart.
    for (size_t i = 0; i < playbook.steps.size(); ++i) {
      const PlaybookStep& step = playbook.steps[i];
      if (!only_writes(step)) continue;
      const std::string name = playbook.name + "/" + step.name;
      INFO(name << " (" << step.module << "): nothing behind it looks");
      bool seen = false;
      for (size_t later = i + 1; later < playbook.steps.size(); ++later)
        seen = seen || looks(playbook.steps[later]);
      if (kElsewhere.count(name)) used.insert(name);
      CHECK(seen != (kElsewhere.count(name) > 0));
    }
  }
  for (const auto& [name, reason] : kElsewhere) {
    INFO(name << " is no exception any more");
    CHECK(used.count(name) == 1);
  }
}

TEST_CASE("every verify of a shipped playbook asks the system, and its module exists", "[verifies]") {
  for (const Playbook& playbook : shipped())
    for (const PlaybookStep& step : playbook.steps) {
      INFO(playbook.name << "/" << step.name);
      if (step.verify.is_null()) continue;
      CHECK(looks(step));
      CHECK(find_step_module(step.verify.value("module", "")) != nullptr);
    }
  for (const auto& name : kWritten) {
    INFO(name);
    CHECK(find_step_module(name) != nullptr);
  }
}
