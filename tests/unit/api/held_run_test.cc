// A controller that comes back in the middle of a run and cannot read its spec: the run waits for it, and no
// node pays for that.
#include "controller/link/link_hub.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// node01's inventory was under way when the controller ended; the one that comes back finds this spec.
struct Upgraded : Controller {
  explicit Upgraded(const std::string& stored) {
    REQUIRE(call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
    start_a_run("node01");
    std::promise<void> written;
    on_reactor([&] {
      order = order_id(services().store.run(1).value(), "node01/inventory", 1);
      SpecRow row;
      row.revision = services().store.next_spec_revision();
      row.text = stored;
      row.digest = "sha256:stored";
      services().store.write({row}, [&](Status) { written.set_value(); });
    });
    written.get_future().get();
    restart();
    open();
    settle();
  }
  bool problem() { return get("/v1/status")["problems"].contains("run"); }
  std::string state() { return get("/v1/runs")["runs"][0]["state"].get<std::string>(); }
  // The agent of node01 polls while it is at this order; whether the reply withdraws it.
  bool stopped(const std::string& id) {
    bool is = false;
    on_reactor([&] {
      services().link.poll("node01", {id},
                           [&is](const wire::PollReply& reply) { is = is || !reply.withdrawn.empty(); }, {});
      services().link.hang_up("node01");  // it polls once: no poll waits when this returns
    });
    return is;
  }
  std::string order;
};

// What a version that came later might say of a text that was good.
std::string refused() {
  return replaced(testing::kSpec, "cluster: gaggle", "cluster: gaggle\nno_such_key: 1");
}

}  // namespace

TEST_CASE("a run is not continued while this version does not accept the stored spec", "[api][held]") {
  Upgraded c(refused());
  CHECK_FALSE(c.active());
  CHECK(c.problem());
  CHECK(c.state() == "running");
  CHECK(c.get("/v1/nodes/node01")["state"] != "quarantined");
  CHECK_FALSE(c.stopped(c.order));  // whatever its agent is at goes on
  SECTION("an accepted one: the run goes on") {
    REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
    CHECK(c.active());
    CHECK_FALSE(c.problem());
    CHECK(c.state() == "running");
    CHECK_FALSE(c.stopped(c.order));
    CHECK(c.stopped("7-1/node01/inventory#1"));
    CHECK(c.call(Listener::local, "PUT", "/v1/spec", refused() + "\n").status == 422);
  }
  SECTION("one that declares another machine in the node's place: the run is not continued") {
    REQUIRE(
        c.call(Listener::local, "PUT", "/v1/spec", replaced(testing::kSpec, "node[01-03]", "other[01-03]"))
            .status == 200);
    c.settle();
    CHECK_FALSE(c.active());
    CHECK(c.problem());
    CHECK(c.state() == "failed");
    CHECK(c.stopped(c.order));
  }
  SECTION("a spec that is not accepted either changes nothing") {
    c.on_reactor([&] { c.services().spec.changed(); });
    CHECK_FALSE(c.active());
    CHECK(c.problem());
    CHECK(c.state() == "running");
  }
  SECTION("nor does another restart") {
    c.restart();
    c.open();
    CHECK_FALSE(c.active());
    CHECK(c.problem());
    CHECK(c.state() == "running");
  }
}

TEST_CASE("a run whose spec is accepted is continued at once, and held no more", "[api][held]") {
  Upgraded c(testing::kSpec);
  CHECK(c.active());
  CHECK_FALSE(c.problem());
  c.on_reactor([&] { c.services().spec.changed(); });
  CHECK(c.active());
  CHECK(c.state() == "running");
}
