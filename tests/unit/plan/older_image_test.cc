// A rebuilt image re-images no node by itself.
#include "controller/plan/passes.h"

#include <fmt/format.h>

#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

// As they were accepted last.
PlannerInput accepted_then_built() {
  PlannerInput in = at_work();
  for (const auto& [name, digest] : planned(in).config_digests) in.nodes[name].config_digest = digest;
  in.images["cpu"].digest = "sha256:new";
  return in;
}

bool is_written(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& a) {
    return a.kind == ActionKind::image || a.kind == ActionKind::write_slot || a.kind == ActionKind::netboot;
  });
}

}  // namespace

TEST_CASE("older build: `up` leaves accepted nodes in it, and says so", "[plan]") {
  PlannerInput in = accepted_then_built();
  std::string what = "3 nodes run an older build of image 'cpu'";
  SECTION("accepted") {}
  SECTION("its slots are not known: it may be an image of another name") {
    for (auto& [name, seen] : in.nodes) seen.facts->boot = {};
    what = "3 nodes run an image that is not the newest build of 'cpu'";
  }
  const Plan plan = planned(in);
  CHECK(plan.empty());
  CHECK(plan.unchanged.size() == 3);
  CHECK(has_note(plan, what));
  CHECK(has_note(plan, "`muster reimage node[01-03]`"));
}

TEST_CASE("older build: a degraded node is measured again in it, and one whose spec changed configured",
          "[plan]") {
  PlannerInput in = accepted_then_built();
  in.nodes["node02"].state = NodeState::degraded;
  const Plan degraded = planned(in);
  CHECK(degraded.nodes == std::vector<std::string>{"node02"});
  CHECK(!is_written(degraded));
  in.playbooks["base"].steps[1].params["content"] = "other";
  const Plan changed = planned(in);
  CHECK(changed.kind == PlanKind::apply);
  CHECK(changed.nodes.size() == 3);
  CHECK(!is_written(changed));
}

TEST_CASE("older build: what is not at work, or runs another image, is installed as ever", "[plan]") {
  PlannerInput in = accepted_then_built();
  NodeObservation& seen = in.nodes["node02"];
  SECTION("quarantined by a run") { seen.state = NodeState::quarantined; }
  SECTION("discovered") { seen.state = NodeState::discovered; }
  SECTION("in the RAM system") { seen.mode = wire::Mode::ram; }
  SECTION("another image, as its disk notes it") { seen.facts->boot.slots["a"].image = "login"; }
  SECTION("another image that is built, too") {
    seen.facts->boot = {};
    in.images["login"] = {"sha256:cpu", "/images/login/manifest.json"};
  }
  const Plan plan = planned(in);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(plan.find("node02/image"));
  CHECK(!plan.find("node02/write"));
}

TEST_CASE("older build: `up --reimage` replaces it, in place where that can be", "[plan]") {
  PlannerInput in = accepted_then_built();
  in.request.reimage = true;
  CHECK(refusals_of(in) == std::set<std::string>{"storage-needed"});  // all at once
  in.request.nodes = {"node02"};
  const Plan plan = planned(in);
  CHECK(plan.nodes == std::vector<std::string>{"node02"});
  CHECK(plan.find("node02/write")->params["image"]["digest"] == "sha256:new");
  CHECK(plan.find("node02/commit"));
  CHECK(has_note(plan, "node02 is re-imaged in place"));
  in.request.through_ram = true;
  CHECK(planned(in).find("node02/image"));
  // One that runs the newest build has nothing to do.
  in.images["cpu"].digest = "sha256:cpu";
  CHECK(planned(in).empty());
}

TEST_CASE("older build: configured with what the spec has baked since, as far as it is not in it", "[plan]") {
  PlannerInput in = accepted_then_built();
  in.nodes["node02"].state = NodeState::degraded;
  const std::string digest = in.nodes["node02"].config_digest;
  const auto installs = [](const Plan& plan) {
    const Json& steps = plan.find("node02/configure")->params["steps"];
    return std::any_of(steps.begin(), steps.end(), [](const Json& s) { return s["id"] == "base/packages"; });
  };
  const Plan older = planned(in);
  CHECK(installs(older));
  CHECK(older.config_digests.at("node02") == digest);
  // In the newest build, and in one that is about to be written, it is there already.
  in.images["cpu"].digest = "sha256:cpu";
  const Plan newest = planned(in);
  CHECK(!installs(newest));
  CHECK(newest.config_digests.at("node02") == digest);
  in.images["cpu"].digest = "sha256:new";
  in.request = {RequestKind::reimage, {"node02"}};
  CHECK(!installs(planned(in)));
}

TEST_CASE("older build: where `up --reimage` is refused, the way out is one that there is", "[plan]") {
  PlannerInput in = accepted_then_built();
  in.request.reimage = true;
  const auto made = make_plan(in);
  REQUIRE(made.ok());
  REQUIRE(!made->refusals.empty());
  for (const auto& r : made->refusals) {
    CHECK(r.message.find("--limit") != std::string::npos);
    CHECK(r.message.find(fmt::format("`muster reimage {0} --force {0}`", r.node)) != std::string::npos);
  }
}
