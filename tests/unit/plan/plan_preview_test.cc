// What a plan changes on each node: the kind of work, why, and the steps that are not as they were.
#include "controller/plan/plan_preview.h"

#include "base/split.h"
#include "tests/unit/plan/trial_fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

constexpr const char* kMotd = "one\ntwo\n";

// node03 has a role of its own, with one playbook more; no storage.
PlannerInput two_roles_accepted() {
  PlannerInput in = at_work();
  in.spec.storage.clear();
  in.spec.roles = {{"cpu", {"base"}}, {"login", {"base", "greeting"}}};
  for (NodeSpec& node : in.spec.nodes) {
    node.disks.erase("fast");
    node.disks.erase("bulk");
  }
  in.spec.nodes[2].role = "login";
  in.playbooks["greeting"] = {
      "greeting", "", {step("motd", "node", {{"path", "/etc/motd"}, {"content", kMotd}})}};
  for (const auto& [name, digest] : planned(in).config_digests) in.nodes[name].config_digest = digest;
  return in;
}

PlanOutcome outcome_of(const PlannerInput& in) {
  auto made = make_plan(in);
  REQUIRE(made.ok());
  REQUIRE(made->refusals.empty());
  return std::move(made).value();
}

std::map<std::string, NodeChange> changes(const PlannerInput& after, const PlannerInput& before) {
  const PlanOutcome made = outcome_of(after);
  const Plan present = planned(input_of_steps(before, made.plan.nodes));
  std::map<std::string, NodeChange> out;
  for (const NodeChange& change : node_changes_of(after, made, &present)) out[change.node] = change;
  return out;
}

}  // namespace

TEST_CASE("preview: a changed playbook of one role changes that step of its nodes alone", "[plan][preview]") {
  const PlannerInput before = two_roles_accepted();
  REQUIRE(planned(before).empty());
  PlannerInput after = before;
  after.playbooks["greeting"].steps[0].params["content"] = "one\n2\n";
  const auto found = changes(after, before);
  REQUIRE(found.size() == 1);
  const NodeChange& change = found.at("node03");
  CHECK(change.work == "configure");
  CHECK(change.why != "");
  CHECK(change.accepted_again);
  REQUIRE(change.compared);
  REQUIRE(change.steps.size() == 1);
  CHECK(change.steps[0].step == "greeting/motd");
  CHECK(change.steps[0].change == "changed");
  CHECK(has(change.steps[0].diff, "\n-two\n+2\n"));
}

TEST_CASE("preview: steps that come and go are named, on the nodes of both roles", "[plan][preview]") {
  const PlannerInput before = two_roles_accepted();
  PlannerInput after = before;
  after.spec.roles["cpu"] = {"base", "greeting"};
  after.spec.roles["login"] = {"base"};
  const auto found = changes(after, before);
  REQUIRE(found.size() == 3);
  REQUIRE(found.at("node01").steps.size() == 1);
  CHECK(found.at("node01").steps[0].change == "added");
  REQUIRE(found.at("node03").steps.size() == 1);
  CHECK(found.at("node03").steps[0].change == "removed");
  CHECK(found.at("node03").steps[0].module == "file");
}

TEST_CASE("preview: the work and its reason follow from what was seen", "[plan][preview]") {
  PlannerInput in = two_roles_accepted();
  std::string work = "configure", why = "degraded";
  SECTION("degraded") { in.nodes["node02"].state = NodeState::degraded; }
  SECTION("never seen") {
    in.nodes["node02"] = {};
    work = "discover", why = "never";
  }
  SECTION("silent") {
    in.nodes["node02"].online = false;
    work = "wake", why = "silent";
  }
  SECTION("not installed") {
    in.nodes["node02"] = seen_in_ram("node02");
    work = "install", why = "not installed";
  }
  SECTION("of another image") {
    in.nodes["node02"].facts->boot.slots["a"].image = "login";
    in.nodes["node02"].image_digest = "sha256:login";
    in.nodes["node02"].facts->boot.slots["a"].digest = "sha256:login";
    work = "re-image", why = "image cpu";
  }
  const auto found = node_changes_of(in, outcome_of(in), nullptr);
  REQUIRE(found.size() == 1);
  CHECK(found[0].node == "node02");
  CHECK(found[0].work == work);
  CHECK(has(found[0].why, why));
  CHECK_FALSE(found[0].compared);
}

TEST_CASE("preview: the reason is the one for which the planner decided", "[plan][preview]") {
  PlannerInput in = two_roles_accepted();
  std::string why;
  SECTION("an older build that the request replaces") {
    in.nodes["node02"].image_digest = "sha256:earlier";
    in.nodes["node02"].facts->boot.slots["a"].digest = "sha256:earlier";
    in.request.reimage = true;
    why = "it runs an older build of image cpu, which is replaced";
  }
  SECTION("named with --force, and nothing else") {
    in.request.nodes = {"node02"};
    in.request.force = {"node02"};
    why = "it was named with --force";
  }
  SECTION("not as declared, and named with --force") {
    in.request.nodes = {"node02"};
    in.request.force = {"node02"};
    in.nodes["node02"].config_digest = "sha256:earlier";
    why = "its configuration or acceptance is declared differently";
  }
  const PlanOutcome made = outcome_of(in);
  REQUIRE(made.plan.nodes == std::vector<std::string>{"node02"});
  CHECK(made.why == std::map<std::string, std::string>{{"node02", why}});
}

TEST_CASE("preview: nodes that a request skips are not planned, and the others count as not named",
          "[plan][preview]") {
  PlannerInput in = two_roles_accepted();
  for (const char* node : {"node01", "node02", "node03"}) in.nodes[node].state = NodeState::degraded;
  in.nodes["node02"].state = NodeState::drained;
  in.request.skip = {"node01"};
  const Plan plan = planned(in);
  CHECK(plan.nodes == std::vector<std::string>{"node03"});
  CHECK(plan.left_out == std::vector<std::string>{"node02"});
}

TEST_CASE("preview: the steps under the present spec leave out nodes that it does not declare",
          "[plan][preview]") {
  const PlannerInput in = two_roles_accepted();
  CHECK(input_of_steps(in, {"node03", "node09"}).request.nodes == std::vector<std::string>{"node03"});
  CHECK(planned(input_of_steps(in, {"node03"})).nodes == std::vector<std::string>{"node03"});
}

TEST_CASE("preview: secrets of steps are named with the nodes that get them", "[plan][preview]") {
  PlannerInput in = two_roles_accepted();
  in.playbooks["greeting"].steps[0].params["content"] = "secret:greeting";
  CHECK(secrets_of_steps(planned(in)) ==
        std::map<std::string, std::vector<std::string>>{{"greeting", {"node03"}}});
}
