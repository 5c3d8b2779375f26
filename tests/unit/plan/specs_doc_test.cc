// The specs of docs/specs: each parses, has a plan on machines that are what it declares, and every playbook
// of a node's role is carried out there.
#include <algorithm>
#include <filesystem>
#include <set>

#include "controller/plan/lint.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/shipped.h"

using namespace muster;
using namespace muster::testing;

namespace fs = std::filesystem;

namespace {

// Playbooks of the steps that a node gets, from the ids "playbook/step".
std::set<std::string> played(const Plan& plan, const std::string& node) {
  std::set<std::string> out;
  for (const auto& action : plan.actions) {
    if (action.node != node) continue;
    for (const Json& step : action.params.value("steps", Json::array())) {
      const std::string id = step["id"];
      out.insert(id.substr(0, id.find('/')));
    }
  }
  return out;
}

std::vector<fs::path> shown_specs() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(source_dir() + "/docs/specs"))
    if (entry.path().extension() == ".yaml") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("the specs that are shown have a plan without an objection", "[plan][docs]") {
  const auto specs = shown_specs();
  REQUIRE(specs.size() >= 3);
  const std::string index = text_of(source_dir() + "/docs/specs/README.md");
  for (const auto& path : specs) {
    CAPTURE(path.filename().string());
    CHECK(index.find("](" + path.filename().string() + ")") != std::string::npos);
    const PlannerInput in = shipped_input(text_of(path));
    const Plan plan = planned_of(in);
    CHECK(plan.kind == "install");
    CHECK(plan.nodes.size() == in.spec.nodes.size());
    CHECK(plan.profile == in.spec.acceptance_profile);
    for (const auto& note : plan.notes) {
      CAPTURE(note);
      CHECK(note.find("left out") == std::string::npos);
    }
    for (const auto& node : in.spec.nodes) {
      CAPTURE(node.name);
      const auto there = played(plan, node.name);
      CHECK(there.count(in.spec.acceptance_profile) == 1);
      for (const auto& playbook : in.spec.roles.at(node.role)) {
        CAPTURE(playbook);
        // What an image has baked is not carried out again; the verifying steps of the others are.
        const auto& baked = in.spec.images.at(node.image).bake;
        CHECK((there.count(playbook) == 1 || std::count(baked.begin(), baked.end(), playbook) == 1));
      }
    }
  }
}
