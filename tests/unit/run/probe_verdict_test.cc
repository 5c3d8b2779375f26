#include "controller/run/probe_verdict.h"

#include "controller/run/narrow.h"
#include "tests/catch.h"

using namespace muster;
using What = ProbeVerdict::What;

namespace {

const ExecutorTiming kTiming;

// n1's probe of n2 failed a moment ago; n2 was last heard before that.
FailedProbe failed() {
  FailedProbe p;
  p.started = {1'000'000};
  p.failed = p.now = {1'020'000};
  p.others = {{"n2", false, {1'010'000}, {500'000}}};
  p.next = "n2";
  return p;
}

}  // namespace

TEST_CASE("a failed probe is judged when it is known whether the probed node is there", "[run]") {
  FailedProbe p = failed();
  const ProbeVerdict first = judge_probe(p, kTiming);
  CHECK(first.what == What::wait);
  CHECK(first.node == "n2");
  CHECK(first.until == SteadyMs{1'010'000} + kTiming.lost_after);
  SECTION("it is heard: the failure counts") {
    p.others[0].contact = p.failed + 1;
    CHECK(judge_probe(p, kTiming).what == What::stands);
  }
  SECTION("it was given up: the failure does not count") {
    p.others[0].gone = true;
    CHECK(judge_probe(p, kTiming).what == What::excuse);
  }
  SECTION(
      "the controller came in between: whether it was away is unknown, and the failure does not count, "
      "within limits") {
    p.others[0].contact = p.failed + 1;
    p.watched = p.started + 1;
    CHECK(judge_probe(p, kTiming).what == What::excuse);
    CHECK(judge_probe(p, kTiming).node == "n2");
    p.others[0].excuses = kMostExcuses;
    CHECK(judge_probe(p, kTiming).what == What::stands);
    p.others[0].excuses = 0;
    p.watched = p.started;
    CHECK(judge_probe(p, kTiming).what == What::stands);
  }
  SECTION("it was away and is back: the failure does not count; time after time: it is accused itself") {
    p.others[0].contact = p.others[0].returned = p.failed + 1;
    CHECK(judge_probe(p, kTiming).what == What::excuse);
    p.others[0].excuses = kMostExcuses;
    CHECK(judge_probe(p, kTiming).what == What::quarantine);
    CHECK(judge_probe(p, kTiming).node == "n2");
  }
  SECTION("it stays silent: it is accused, not the prober") {
    p.now = first.until - 1;
    CHECK(judge_probe(p, kTiming).what == What::wait);
    p.now = first.until;
    CHECK(judge_probe(p, kTiming).what == What::quarantine);
    CHECK(judge_probe(p, kTiming).node == "n2");
  }
  SECTION("all agents were silent in between: it has its time from then on") {
    p.now = p.listens = first.until + kMinute;
    CHECK(judge_probe(p, kTiming).what == What::wait);
    CHECK(judge_probe(p, kTiming).until == p.listens + kTiming.lost_after);
    p.now = p.listens + kTiming.lost_after;
    CHECK(judge_probe(p, kTiming).what == What::quarantine);
  }
  SECTION("contacts of before the controller's restart are unknown: no node is quarantined at once") {
    p.others[0].contact = {0};
    CHECK(judge_probe(p, kTiming).what == What::wait);
    CHECK(judge_probe(p, kTiming).until == p.failed - kTiming.silent_after + kTiming.lost_after);
  }
}

TEST_CASE("before a prober is given up another node repeats the probe", "[run]") {
  FailedProbe p = failed();
  p.others[0].contact = p.failed + 1;
  p.tries_left = false;
  CHECK(judge_probe(p, kTiming).what == What::repeat);
  CHECK(judge_probe(p, kTiming).node == "n2");
  p.next = {};  // there is no other, or it repeated it already
  CHECK(judge_probe(p, kTiming).what == What::stands);
}

TEST_CASE("which nodes a step is about follows from its params", "[run]") {
  const Json ring = {{{"name", "n1"}, {"address", "10.0.0.1"}},
                     {{"name", "n2"}, {"address", "10.0.0.2"}},
                     {{"name", "n3"}, {"address", "10.0.0.3"}}};
  const Json peers = {{{"name", "n1"}}, {{"name", "n2"}}, {{"name", "n3"}}};
  Json params = {{"ring", ring},
                 {"steps",
                  {{{"id", "probe"}, {"params", {{"next_live", true}}}},
                   {{"id", "links"}, {"params", {{"peers", peers}, {"peers_live", true}}}},
                   {{"id", "own"}, {"params", {{"peers", peers}}}}}}};
  const RingsOfOrder rings = take_rings(params);
  auto about = involved(params, rings, "n1", [](const std::string&) { return false; });
  REQUIRE(about.size() == 2);
  CHECK(about["probe"].names == std::set<NodeName>{"n2"});
  CHECK(about["probe"].next == "n2");
  CHECK(about["probe"].after_next == "n3");
  CHECK(about["links"].names == std::set<NodeName>{"n2", "n3"});
  about = involved(params, rings, "n1", [](const std::string& n) { return n == "n2"; });
  CHECK(about["probe"].next == "n3");
  CHECK(about["probe"].after_next.empty());
  CHECK(about["links"].names == std::set<NodeName>{"n3"});
  CHECK(involved(Json("odd"), rings, "n1", [](const std::string&) { return false; }).empty());
}

TEST_CASE("steps of one order about different nodes have rings of their own", "[run][roles]") {
  const auto node = [](const std::string& name) {
    return Json{{"name", name}, {"address", "10.0.0." + name.substr(1)}};
  };
  const auto step = [](const std::string& id, const std::string& host) {
    return Json{{"id", id}, {"params", {{"next_live", true}, {"host", host}}}};
  };
  Json params = {{"steps", {step("all", "10.0.0.2"), step("some", "10.0.0.3")}},
                 {"rings",
                  {{"all", {node("n1"), node("n2"), node("n3"), node("n4")}},
                   {"some", {node("n1"), node("n3"), node("n4")}}}}};
  const RingsOfOrder rings = take_rings(params);
  CHECK_FALSE(params.contains("rings"));
  std::set<std::string> dead;
  const auto gone = [&](const std::string& name) { return dead.count(name) > 0; };
  CHECK(involved(params, rings, "n1", gone)["all"].next == "n2");
  CHECK(involved(params, rings, "n1", gone)["some"].next == "n3");
  dead = {"n3"};
  Json sent = params;
  CHECK(narrow_order(sent, rings, "n1", gone).empty());
  CHECK(sent["steps"][0]["params"] == Json{{"host", "10.0.0.2"}});
  CHECK(sent["steps"][1]["params"] == Json{{"host", "10.0.0.4"}});
  dead = {"n3", "n4"};
  sent = params;
  CHECK(narrow_order(sent, rings, "n1", gone) == std::vector<std::string>{"some"});
}
