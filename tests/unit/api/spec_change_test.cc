// What a new revision of the spec may not do to machines that are installed, and what a controller does about
// runs at its start.
#include "base/json.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

void installed(Controller& controller, const std::string& node) {
  std::promise<void> written;
  controller.on_reactor([&] {
    controller.services().bringup.executor().set_node(NodeName(node),
                                                      [](NodeRow& row) { row.image_digest = "sha256:x"; });
    controller.services().store.write({EventRow{}}, [&](Status) { written.set_value(); });
  });
  written.get_future().get();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

constexpr const char* kMacs = R"([ "52:54:00:20:00:01", "52:54:00:20:00:02", "52:54:00:20:00:03" ])";

}  // namespace

TEST_CASE("an installed node's address does not move because another one leaves or comes", "[api]") {
  Controller c;
  const std::string spec = testing::kSpec;
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", spec).status == 200);
  std::string without = replaced(spec, "node[01-03]", "node[02-03]");
  without = replaced(without, kMacs, R"([ "52:54:00:20:00:02", "52:54:00:20:00:03" ])");
  SECTION("nothing is installed yet") {
    CHECK(c.call(Listener::local, "PUT", "/v1/spec", without).status == 200);
  }
  SECTION("one is") {
    installed(c, "node03");
    const auto refused = c.call(Listener::local, "PUT", "/v1/spec", without);
    CHECK(refused.status == 403);
    CHECK(refused.body.find("node03: address: 10.20.0.13   (would become 10.20.0.12)") != std::string::npos);
    CHECK(refused.body.find("node02:") == std::string::npos);
    CHECK(parse_json(c.call(Listener::local, "GET", "/v1/spec").body).value()["text"] == spec);
    CHECK(c.call(Listener::local, "PUT", "/v1/spec?dry=1", without).status == 403);
    const std::string declared =
        replaced(without, "    image: cpu", "    image: cpu\n    address: \"10.20.0.1{n}\"");
    CHECK(c.call(Listener::local, "PUT", "/v1/spec", declared).status == 200);
    // To give one another address on purpose is its owner's word.
    CHECK(c.call(Listener::local, "PUT", "/v1/spec", replaced(declared, "10.20.0.1{n}", "10.20.0.5{n}"))
              .status == 200);
  }
}

TEST_CASE("a run that cannot be continued is ended, and does not keep a later one from being continued",
          "[api]") {
  Controller c;
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  std::promise<void> written;
  c.on_reactor([&] {
    RunRow lost;
    lost.id = c.services().store.next_run_id();
    lost.plan_digest = "sha256:nowhere";
    lost.state = RunState::running;
    lost.started = c.services().reactor.now();
    c.services().store.write({lost}, [&](Status) { written.set_value(); });
  });
  written.get_future().get();
  c.start_a_run("node01");  // the next one, and as if the controller were killed in it:
  std::promise<RunRow> first, second;
  c.restart();
  c.open();
  c.on_reactor([&] {
    c.services().store.write({EventRow{}},
                             [&](Status) { first.set_value(c.services().store.run(1).value()); });
  });
  const RunRow lost = first.get_future().get();
  CHECK(lost.state == RunState::failed);
  CHECK(lost.ended > 0);
  c.on_reactor([&] { second.set_value(c.services().store.run(2).value()); });
  CHECK(second.get_future().get().state == RunState::running);
  int64_t active = 0;
  c.on_reactor([&] {
    active = c.services().bringup.executor().active() ? c.services().bringup.executor().run_id() : 0;
  });
  CHECK(active == 2);
}

TEST_CASE("without a spec what is missing is the spec, not a revision", "[api]") {
  Controller c;
  const auto none = c.call(Listener::local, "GET", "/v1/spec");
  CHECK(none.status == 404);
  CHECK(none.body.find("muster up SPEC") != std::string::npos);
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  const auto other = c.call(Listener::local, "GET", "/v1/spec?rev=9");
  CHECK(other.status == 404);
  CHECK(other.body.find("muster up SPEC") == std::string::npos);
}
