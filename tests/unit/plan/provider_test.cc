// Nodes behind a provider's API: when the provider installs them, what the plan says about it, and when not.
#include "controller/plan/lint.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using namespace muster::testing;

namespace {

// node03 is rented.
PlannerInput rented(bool installs = true) {
  PlannerInput in = with_nodes(testing::installed);
  for (NodeSpec& node : in.spec.nodes)
    if (node.name == "node03") {
      node.power = {};
      node.power.driver = "sakura-phy";
      node.power.address = "113100000003";
      node.power.secret = "sakura";
      if (installs) node.power.install_image = "debian12-x86_64", node.power.install_os = "debian-12";
    }
  return in;
}
bool asks_provider(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(),
                     [](const Action& a) { return a.params.is_object() && a.params.contains("reinstall"); });
}
bool says(const std::vector<std::string>& notes, const std::string& text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const auto& n) { return n.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("a rented node that was never seen is installed by its provider, and the plan says what is lost",
          "[plan][phy]") {
  PlannerInput in = rented();
  in.nodes.erase("node03");
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::discover);
  const Action* netboot = plan.find("node03/netboot");
  REQUIRE(netboot);
  CHECK(netboot->params["reinstall"]["image"] == "debian12-x86_64");
  CHECK(netboot->params["reinstall"]["os"] == "debian-12");
  CHECK(netboot->timeout > in.spec.limits.netboot);
  const std::string text = render_plan(plan, false);
  CHECK(text.find("WILL BE DESTROYED: all data on all disks of node03") != std::string::npos);
  CHECK(text.find("Nothing will be destroyed") == std::string::npos);
  // Programs read it, too.
  const Json destroys = to_json(plan)["destroys"];
  REQUIRE(destroys.size() == 1);
  CHECK(destroys[0]["node"] == "node03");
  CHECK(destroys[0]["every_disk"] == true);
  CHECK(destroys[0]["model"] == "every disk");  // as the report shows it
  CHECK(destroys[0]["why"].get<std::string>().find("debian12-x86_64") != std::string::npos);
  CHECK(to_json(*plan_from_json(to_json(plan))) == to_json(plan));
  CHECK(lint_plan(plan).empty());
  const auto complains = [&](auto change) {
    Plan bad = plan;
    change(bad);
    return !lint_plan(bad).empty();
  };
  CHECK(complains([](Plan& p) { p.destroys.clear(); }));
  CHECK(complains([](Plan& p) { p.destroys[0].every_disk = false; }));
  CHECK(complains([](Plan& p) { p.destroys.push_back(p.destroys[0]); }));
  CHECK(complains([](Plan& p) { p.destroys[0].node = "node02"; }));
  CHECK(complains([](Plan& p) { p.actions[0].params = Json::object(); }));
  CHECK(plan_from_json(to_json(plan)).value().find("node03/netboot")->params == netboot->params);
}

TEST_CASE("a rented node without power.install is out of reach, and nothing installs it", "[plan][phy]") {
  PlannerInput in = rented(false);
  in.nodes.erase("node03");
  const Plan plan = planned(in);
  CHECK_FALSE(asks_provider(plan));
  CHECK(plan.find("node03/netboot") == nullptr);
  CHECK(says(plan.notes, "power.install"));
  in.request.nodes = {"node03"};
  CHECK(make_plan(in)->refusals.size() == 1);
}

TEST_CASE("a rented node that muster installed is never installed by its provider again", "[plan][phy]") {
  PlannerInput in = rented();
  SECTION("it runs: its own agent hands over") {
    in.request.kind = RequestKind::reimage;
    in.request.nodes = {"node03"};
    const Plan plan = planned(in);
    REQUIRE(plan.find("node03/netboot"));
    CHECK(plan.find("node03/netboot")->params == Json::object());
    CHECK_FALSE(asks_provider(plan));
  }
  SECTION("it is silent: it is waited for") {
    in.nodes["node03"].online = false;
    const Plan plan = planned(in);
    CHECK(plan.kind == PlanKind::wake);
    CHECK_FALSE(asks_provider(plan));
  }
  SECTION("it is silent and to be re-imaged: refused, with what to do") {
    in.nodes["node03"].online = false;
    in.request.kind = RequestKind::reimage;
    in.request.nodes = {"node03"};
    const auto made = make_plan(in);
    REQUIRE(made.ok());
    REQUIRE(made->refusals.size() == 1);
    CHECK(made->refusals[0].message.find("muster node rm node03") != std::string::npos);
    CHECK_FALSE(asks_provider(made->plan));
  }
  SECTION("the database is an older copy: its state is unknown") {
    in.nodes["node03"] = NodeObservation();
    in.nodes["node03"].doubtful = true;
    const Plan plan = planned(in);
    CHECK_FALSE(asks_provider(plan));
  }
}

TEST_CASE("a rented node whose RAM system was lost before it was installed is inspected again",
          "[plan][phy]") {
  PlannerInput in = rented();
  in.nodes["node03"] = seen_in_ram("node03");
  in.nodes["node03"].online = false;
  const Plan plan = planned(in);
  CHECK(plan.kind == PlanKind::discover);
  CHECK(asks_provider(plan));
  in.nodes["node03"].online = true;
  CHECK_FALSE(asks_provider(planned(in)));
}
