// `among: group`: which node leads, which serve, and with which.
#include "controller/plan/plan.h"
#include "controller/spec/reader/parse_playbook.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

PlannerInput three() {
  PlannerInput in = with_nodes(installed);
  auto& steps = in.playbooks["acceptance/lab"].steps;
  PlaybookStep load = step("load", "cluster",
                           {{"hosts", "{{nodes}}"},
                            {"peers_live", true},
                            {"deadline_seconds", 300},
                            {"pair_deadline_seconds", 90}},
                           4, "leader");
  load.module = kGroupModule;
  load.among = kGroup;
  load.when = "{{#has_peers}}yes{{/has_peers}}";
  steps.push_back(load);
  in.request.kind = RequestKind::accept;
  return in;
}

// Of each node, the step of stage 4: "module: names of its hosts or peers"; those that have none are left
// out.
std::map<std::string, std::string> stage(const Plan& plan) {
  std::map<std::string, std::string> out;
  for (const auto& action : plan.actions)
    if (const Json params = action.params.json(); action.id == action.node + "/accept-4")
      for (const Json& step : params["steps"]) {
        std::string text = step["module"].get<std::string>() + ":";
        for (const char* key : {"hosts", "peers"})
          for (const Json& one : step["params"].value(key, Json::array()))
            text += " " + one["name"].get<std::string>();
        out[action.node] += text;
      }
  return out;
}
Json params_of(const Plan& plan, const std::string& node) {
  for (const auto& action : plan.actions)
    if (action.id == node + "/accept-4") return action.params.json()["steps"][0]["params"];
  return nullptr;
}

using Stage = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("group: the first node leads over all, the others serve it in the same stage", "[plan][group]") {
  const PlannerInput in = three();
  const Plan plan = planned(in);
  CHECK(stage(plan) == Stage{{"node01", "accept_group: node01 node02 node03"},
                             {"node02", "accept_group_serve: node01"},
                             {"node03", "accept_group_serve: node01"}});
  CHECK(params_of(plan, "node01")["address"] == in.spec.node("node01")->address);
  const Json serves = params_of(plan, "node02");
  CHECK(serves["address"] == in.spec.node("node02")->address);
  CHECK(serves["peers"][0]["address"] == in.spec.node("node01")->address);
  CHECK(serves["peers_live"] == true);
  // The load, and rounds in pairs.
  CHECK(serves["deadline_seconds"].get<double>() >= 300 + 4 * 90);
}

TEST_CASE("group: only nodes of the plan take part, and one alone has no group", "[plan][group]") {
  PlannerInput in = three();
  in.request.nodes = {"node02", "node03"};
  CHECK(stage(planned(in)) ==
        Stage{{"node02", "accept_group: node02 node03"}, {"node03", "accept_group_serve: node02"}});
  in.request.nodes = {"node03"};
  CHECK(stage(planned(in)).empty());
}

TEST_CASE("group: the configuration digest does not depend on who else is in the plan", "[plan][group]") {
  PlannerInput in = three();
  in.request = {RequestKind::up, {}};
  const auto all = planned(in).config_digests;
  in.request.nodes = {"node02"};
  const auto one = planned(in).config_digests;
  REQUIRE(one.size() == 1);
  CHECK(one.at("node02") == all.at("node02"));
}

TEST_CASE("group: what a leader measures is no condition of the stages after it", "[plan][group]") {
  PlannerInput in = three();
  in.playbooks["acceptance/lab"].steps.push_back(step("later", "cluster", Json::object(), 5));
  for (const auto& action : planned(in).actions) {
    CAPTURE(action.id);
    if (action.phase == "accept") CHECK(action.after.size() <= 1);  // its own node's action before
  }
}

TEST_CASE("group: one step to a stage, led, with its own module", "[plan][group]") {
  const auto errors = [](const std::string& steps) {
    return parse_playbook("playbook: p\nsteps:\n" + steps).errors.size();
  };
  const auto group = [](const std::string& name, const std::string& rest) {
    return "  - name: " + name + "\n    phase: cluster\n    module: accept_group\n    among: group\n" + rest;
  };
  CHECK(errors(group("a", "    on: leader\n")) == 0);
  CHECK(errors(group("a", "    on: leader\n") + group("b", "    on: leader\n    stage: 2\n")) == 0);
  CHECK(errors(group("a", "    on: leader\n") + group("b", "    on: leader\n")) == 1);
  CHECK(errors(group("a", "")) == 1);
  CHECK(errors("  - name: a\n    phase: cluster\n    on: leader\n    module: accept_group\n") == 1);
  CHECK(errors("  - name: a\n    phase: cluster\n    among: group\n    on: leader\n    module: file\n") == 1);
  CHECK(errors("  - name: a\n    phase: cluster\n    module: accept_group_serve\n") == 1);
}
