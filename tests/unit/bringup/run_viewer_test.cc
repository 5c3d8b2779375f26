#include "controller/bringup/run_viewer.h"

#include "controller/bringup/run_view.h"
#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

Action action(const std::string& node, const std::string& name) {
  Action a;
  a.id = node + "/" + name;
  a.node = NodeName(node);
  a.phase = name;
  return a;
}

// Actions of its nodes in turn, and one in reserve.
std::shared_ptr<const Plan> plan() {
  Plan out;
  out.nodes = {"n1", "n2"};
  out.actions = {action("n1", "image"), action("n2", "image"), action("n1", "configure"),
                 action("n2", "configure"), action("n1", "return")};
  out.actions.back().when_failed = true;
  return std::make_shared<const Plan>(std::move(out));
}

struct Bench {
  ManualReactor reactor;
  MemStore store{reactor};
  RunViewer viewer;
  std::shared_ptr<const Plan> of = plan();
  RunRow run{1, "sha256:aa", RunState::running, 5, 0, "someone"};
  TimeMs time = 10;

  Bench() { begins(); }
  void begins() { written({run}); }
  void written(std::vector<Write> rows) {
    store.write(std::move(rows), [](const Status& done) { REQUIRE(done.ok()); });
    reactor.advance(kSecond);
  }

  void happens(const std::string& node, const std::string& name, const std::string& event,
               Json data = Json::object()) {
    JournalRow row;
    row.run = run.id;
    row.node = NodeName(node);
    row.action = name.empty() ? "" : node + "/" + name;
    row.event = event;
    row.attempt = name.empty() ? 0 : 1;
    row.time = time += 10;
    row.data = std::move(data);
    written({row});
  }
  Json seen() {
    const auto text = viewer.view(store, run, of);
    REQUIRE(text.ok());
    return parse_json(*text).value();
  }
  Json from_nothing() { return run_view(read_run(store, run, RunRows::turns, of).value()).value(); }
};

}  // namespace

TEST_CASE("run viewer: what it adds to the view before is what the journal says", "[bringup]") {
  Bench b;
  CHECK(b.seen() == b.from_nothing());
  struct {
    const char *node, *name, *event;
    Json data = Json::object();
  } const all[] = {{"n1", "image", "intent"},
                   {"n2", "image", "intent"},
                   {"n1", "image", "step", {{"step", "a"}}},
                   {"n1", "image", "started"},
                   {"n1", "image", "succeeded", {{"result", {{"digest", "d"}}}}},
                   {"n1", "configure", "intent"},
                   {"n2", "image", "failed", {{"message", "no such disk"}, {"result", nullptr}}},
                   {"n1", "configure", "succeeded"},
                   {"n2", "", "quarantined", {{"reason", "no such disk"}}},
                   {"n1", "return", "intent"},
                   {"n1", "", "returning", {{"reason", "of old"}}}};
  for (const auto& [node, name, event, data] : all) {
    b.happens(node, name, event, data);
    CAPTURE(node, name, event);
    CHECK(b.seen() == b.from_nothing());
  }
  b.run.state = RunState::cancelled;
  CHECK(b.seen()["state"] == "cancelled");
  CHECK(b.seen() == b.from_nothing());
}

TEST_CASE("run viewer: another run has nothing of the one before", "[bringup]") {
  Bench b;
  b.happens("n1", "image", "intent");
  b.happens("n2", "", "quarantined", {{"reason", "no such disk"}});
  CHECK(b.seen()["nodes"][1]["result"] == "quarantined");
  b.run.id = 2;
  b.begins();
  CHECK(b.seen()["nodes"][1]["result"] == "unfinished");
  SECTION("of the same plan") { b.happens("n2", "image", "intent"); }
  SECTION("of another one") {
    Plan other = *b.of;
    other.nodes = {"n2"};
    std::erase_if(other.actions, [](const Action& one) { return one.node != "n2"; });
    b.of = std::make_shared<const Plan>(std::move(other));
  }
  CHECK(b.seen() == b.from_nothing());
}

TEST_CASE("run viewer: what is forgotten, and what another plan is given for, is read again", "[bringup]") {
  Bench b;
  b.happens("n1", "image", "intent");
  CHECK(b.seen() == b.from_nothing());
  SECTION("forgotten") { b.viewer.forget(1); }
  SECTION("another one is forgotten") { b.viewer.forget(2); }
  SECTION("as after a restart") { b.of = plan(); }
  b.happens("n1", "image", "started");
  CHECK(b.seen() == b.from_nothing());
}

TEST_CASE("run viewer: of a journal that cannot be there is no view", "[bringup]") {
  Bench b;
  b.happens("n1", "image", "intent");
  CHECK(b.seen() == b.from_nothing());
  b.happens("n1", "image", "succeeded");
  b.happens("n1", "image", "started");
  for (int again = 0; again < 2; ++again) {
    const auto view = b.viewer.view(b.store, b.run, b.of);
    REQUIRE_FALSE(view.ok());
    CHECK(view.error().code == Code::conflict);
  }
}
