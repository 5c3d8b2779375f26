// What operators look up about nodes and events, through a whole controller.
#include <algorithm>

#include "base/split.h"
#include "controller/link/event_log.h"
#include "tests/unit/api/controller.h"
#include "tests/unit/plan/fixture.h"

using namespace muster;
using api::Listener;
using testing::Controller;

namespace {

size_t events_in(const Json& answer) { return answer.value("events", Json::array()).size(); }

// Without those that Controller::settle() writes.
size_t real_events_in(const Json& answer) {
  size_t count = 0;
  for (const Json& event : answer["events"]) count += event.value("kind", "").empty() ? 0 : 1;
  return count;
}

std::string next_of(Controller& c, const std::string& node) {
  return c.good(c.call(Listener::local, "GET", "/v1/nodes/" + node + "/why")).value("next", "");
}

}  // namespace

TEST_CASE("why has a next step for a node never seen, with its image to build, and for one that is held",
          "[api]") {
  Controller c;
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  CHECK(has(next_of(c, "node01"), "muster up --limit node01"));
  CHECK(has(next_of(c, "node01"), "image cpu"));
  CHECK(has(c.get("/v1/nodes/node01/why").value("text", ""), next_of(c, "node01")));
  REQUIRE(c.call(Listener::local, "POST", "/v1/nodes/node02/quarantine", R"({"reason": "PSU"})").status ==
          200);
  CHECK(has(next_of(c, "node02"), "--release"));
  c.start_a_run("node01");
  CHECK(next_of(c, "node01").starts_with("nothing"));
  const Json why = c.get("/v1/nodes/node01/why");
  CHECK(why.value("run_state", "") == "running");
  CHECK(why.value("run", 0) == 1);
}

TEST_CASE("a name that is nearly a node's is answered with it, and no event is written for it",
          "[api][power]") {
  Controller c;
  REQUIRE(c.call(Listener::local, "PUT", "/v1/spec", testing::kSpec).status == 200);
  c.settle();
  const size_t before = real_events_in(c.get("/v1/events/list"));
  CHECK(before > 0);  // the spec
  for (const char* target :
       {"/v1/nodes/nod01/why", "/v1/nodes/nod01", "/v1/nodes/nod01/logs", "/v1/power/nod01/state"}) {
    const auto answer = c.call(Listener::local, "GET", target);
    CAPTURE(target, answer.body);
    CHECK(answer.status == 404);
    CHECK(has(answer.body, "'node01'"));
  }
  for (const char* verb : {"on", "off", "cycle", "shut-down", "network-once"}) {
    CAPTURE(verb);
    CHECK(c.call(Listener::local, "POST", std::string("/v1/power/nod01/") + verb).status == 404);
  }
  c.settle();
  const Json after = c.get("/v1/events/list");
  for (const Json& event : after["events"]) CHECK(event.value("node", "") != "nod01");
  CHECK(real_events_in(after) == before);
}

TEST_CASE("events are found by run and time, the last ones if so requested", "[api]") {
  Controller c;
  c.on_reactor([&] {
    for (int i = 0; i < 10; ++i)
      c.services().events.add(i < 5 ? 3 : 4, "node01", "log", {{"text", std::to_string(i)}});
  });
  c.settle();
  CHECK(events_in(c.get("/v1/events/list?run=3")) == 5);
  CHECK(events_in(c.get("/v1/nodes/node01/logs?run=4&limit=2")) == 2);
  const Json last = c.get("/v1/nodes/node01/logs?newest=1&limit=2");
  REQUIRE(events_in(last) == 2);
  CHECK(last["events"][1]["data"]["text"] == "9");
  const int64_t time = last["events"][1].value("time", int64_t{0});
  CHECK(events_in(c.get("/v1/events/list?run=4&since=" + std::to_string(time))) >= 1);
  CHECK(events_in(c.get("/v1/events/list?run=4&since=" + std::to_string(time + 1000))) == 0);
}

TEST_CASE("a secret that is not there cannot be removed", "[api]") {
  Controller c;
  CHECK(c.call(Listener::local, "DELETE", "/v1/secrets/nope").status == 404);
  REQUIRE(c.call(Listener::local, "PUT", "/v1/secrets/bmc", "admin:pw").status == 200);
  CHECK(c.call(Listener::local, "DELETE", "/v1/secrets/bmc").status == 200);
  CHECK(c.call(Listener::local, "DELETE", "/v1/secrets/bmc").status == 404);
}
