#include "controller/spec/lab_only.h"

#include <filesystem>
#include <set>

#include "controller/options/options.h"
#include "controller/plan/planner.h"
#include "tests/catch.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using testing::parsed;
using testing::replaced;

namespace {

// Made when a test asks for it: `replaced` checks.
std::string quick() { return replaced(testing::kSpec, "profile: lab }", "profile: quick }"); }

bool planned_by(const Spec& spec, bool lab, const std::string& profile = "") {
  PlannerInput in = testing::with_nodes(testing::installed);
  in.spec = spec;
  in.lab = lab;
  in.playbooks["acceptance/quick"] = in.playbooks["acceptance/lab"];
  in.request.profile = profile;
  if (!profile.empty()) in.request.kind = RequestKind::accept;
  const auto made = make_plan(in);
  if (!made.ok()) CHECK(made.error().code == Code::invalid);
  return made.ok();
}

}  // namespace

TEST_CASE("the section `lab:` and the profile lab are for a lab's controller, and named with their places",
          "[spec][lab-only]") {
  CHECK(lab_only(parsed(quick())).empty());
  CHECK(lab_only(parsed(replaced(quick(), "profile: quick }", "profile: standard }"))).empty());
  // As a map, as nothing, and in one line: where the key stands.
  for (const char* section : {"lab:\n  smp: 1\n", "lab:\n", "lab: { smp: 1 }\n"}) {
    CAPTURE(section);
    const auto refused = lab_only(parsed("# a comment\n" + std::string(section) + quick()));
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].path == "lab");
    CHECK(refused[0].line == 2);
    CHECK(refused[0].column == 1);
  }
  const auto both = lab_only(parsed(std::string(testing::kSpec) + "lab:\n  smp: 1\n"));
  REQUIRE(both.size() == 2);
  CHECK(both[0].path == "acceptance.profile");
  CHECK(both[0].line == both[1].line - 1);
  CHECK(both[0].column == 24);
  CHECK(both[1].path == "lab");
  // Asked for beside the spec it stands nowhere in it.
  const auto requested = lab_only(parsed(quick()), "lab");
  REQUIRE(requested.size() == 1);
  CHECK(requested[0].line == 0);
  CHECK(requested[0].path == "profile");
}

TEST_CASE("what is for a lab alone is planned by no other controller, although it is stored",
          "[plan][lab-only]") {
  const std::string section = "lab:\n  smp: 1\n";
  CHECK(planned_by(parsed(quick()), false));
  CHECK(planned_by(parsed(quick()), true));
  for (const std::string& text : {quick() + section, std::string(testing::kSpec), testing::kSpec + section}) {
    CAPTURE(text);
    CHECK_FALSE(planned_by(parsed(text), false));
    CHECK(planned_by(parsed(text), true));
  }
  CHECK_FALSE(planned_by(parsed(quick()), false, "lab"));
  CHECK(planned_by(parsed(quick()), true, "lab"));
}

TEST_CASE("a plan with a lab's profile is one of simulated hardware, with the section or without",
          "[plan][lab-only]") {
  const auto simulated = [](const std::string& text, const std::string& profile) {
    PlannerInput in = testing::with_nodes(testing::installed);
    in.spec = parsed(text);
    in.lab = true;
    for (const char* name : {"acceptance/quick", "acceptance/lab-compare"})
      in.playbooks[name] = in.playbooks["acceptance/lab"];
    in.request.kind = RequestKind::accept;
    in.request.profile = profile;
    const auto made = make_plan(in);
    REQUIRE(made.ok());
    return made->plan.simulated;
  };
  CHECK_FALSE(simulated(quick(), ""));
  CHECK(simulated(quick(), "lab"));
  CHECK(simulated(quick(), "lab-compare"));
  CHECK(simulated(testing::kSpec, ""));
  CHECK_FALSE(simulated(testing::kSpec, "quick"));
  CHECK(simulated(quick() + "lab:\n  smp: 1\n", ""));
}

TEST_CASE("every shipped profile for virtual machines is a lab's, and no other is", "[spec][lab-only]") {
  const std::set<std::string> real = {"quick", "standard", "burn", "beside-jobs"};
  std::set<std::string> labs;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/playbooks/acceptance")) {
    const std::string name = entry.path().stem();
    CAPTURE(name);
    const bool lab = name.starts_with("lab");
    if (lab) labs.insert(name);
    CHECK(lab != (real.count(name) > 0));
    CHECK(is_lab_profile(name) == lab);
    CHECK(lab_only(parsed(quick()), name).size() == (lab ? 1 : 0));
    CHECK(lab_only(parsed(replaced(quick(), "profile: quick }", "profile: " + name + " }"))).size() ==
          (lab ? 1 : 0));
  }
  CHECK(labs.count("lab-compare") == 1);
  for (const char* name : {"", "label", "laboratory", "my-lab"}) CHECK_FALSE(is_lab_profile(name));
}

TEST_CASE("what is shipped for real servers is no lab's", "[lab-only]") {
  CHECK_FALSE(DaemonOptions().lab);
  CHECK_FALSE(PlannerInput().lab);
  for (const char* file : {"systemd/musterd.service", "systemd/deb/musterd.env"})
    CHECK(text_of(source_dir() + "/" + file).find("--lab") == std::string::npos);
}
