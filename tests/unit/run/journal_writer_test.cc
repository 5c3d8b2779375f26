#include "controller/executor/journal_writer.h"

#include <stdexcept>

#include "tests/catch.h"
#include "tests/fakes/manual_reactor.h"
#include "tests/fakes/mem_store.h"

using namespace muster;

namespace {

struct Writer {
  ManualReactor reactor;
  MemStore store{reactor};
  JournalWriter journal{reactor, store};
  std::vector<std::string> durable;

  Writer() {
    PlanRow plan;
    plan.digest = "sha256:plan";
    RunRow run;
    run.id = 1;
    run.plan_digest = plan.digest;
    run.state = RunState::running;
    store.write({plan, run}, [](Status written) { REQUIRE(written.ok()); });
    reactor.advance(100);
  }
  // A row of that name, by that node.
  void write(const std::string& node, const std::string& name) {
    JournalRow row;
    row.run = 1;
    row.node = NodeName(node);
    row.event = name;
    journal.write(NodeName(node), {row}, [this, name] { durable.push_back(name); });
  }
  void refuse(const std::string& name) {
    store.refuse(
        [name](const Write& row) {
          const auto* entry = std::get_if<JournalRow>(&row);
          return entry && entry->event == name;
        },
        fail(Code::failed, "string or blob too big"));
  }
  std::vector<std::string> written() {
    std::vector<std::string> names;
    for (const auto& row : store.journal(1).value_or({})) names.push_back(row.event);
    return names;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a row that the store refuses holds its node, not all", "[run]") {
  Writer w;
  w.refuse("a2");
  for (const auto& [node, name] : std::vector<std::pair<std::string, std::string>>{
           {"a", "a1"}, {"a", "a2"}, {"b", "b1"}, {"a", "a3"}, {"b", "b2"}})
    w.write(node, name);
  w.reactor.advance(10 * kSecond);
  w.write("b", "b3");
  w.reactor.advance(kSecond);
  CHECK(w.durable == Names{"a1", "b1", "b2", "b3"});
  CHECK(w.written() == w.durable);
  CHECK(w.journal.trouble("a") == "string or blob too big");
  CHECK(w.journal.trouble("b").empty());
  CHECK(w.journal.trouble("") == "a: string or blob too big");
  w.store.refuse({}, {});
  w.reactor.advance(2 * kSecond);
  CHECK(w.durable == Names{"a1", "b1", "b2", "b3", "a2", "a3"});
  CHECK(w.journal.trouble("a").empty());
  CHECK(w.journal.trouble("").empty());
}

TEST_CASE("the end of a run is behind every row that was refused", "[run]") {
  Writer w;
  w.refuse("a1");
  w.write("a", "a1");
  w.write("", "ended");
  w.write("b", "b1");
  w.reactor.advance(10 * kSecond);
  CHECK(w.durable == Names{"b1"});
  w.store.refuse({}, {});
  w.reactor.advance(2 * kSecond);
  CHECK(w.durable == Names{"b1", "a1", "ended"});
}

TEST_CASE("a newer row of a node is not overtaken by an older one in what belongs to the run", "[run]") {
  Writer w;
  w.refuse("a1");
  w.write("a", "a1");
  NodeRow older, newer;
  older.name = newer.name = "b";
  older.reason = "older";
  newer.reason = "newer";
  w.journal.write("", {older});
  w.reactor.advance(2 * kSecond);
  w.journal.write("b", {newer});
  w.reactor.advance(2 * kSecond);
  w.store.refuse({}, {});
  w.reactor.advance(2 * kSecond);
  CHECK(w.store.node("b").value_or({}).reason == "newer");
}

TEST_CASE("a full disk delays everything and changes no order", "[run]") {
  Writer w;
  w.store.fail_next(40, fail(Code::failed, "disk full"));
  Names all;
  for (int i = 0; i < 12; ++i) {
    all.push_back(std::string(1, static_cast<char>('a' + i % 3)) + std::to_string(i));
    w.write(all.back().substr(0, 1), all.back());
    w.reactor.advance(100);
  }
  CHECK(w.durable.empty());
  w.reactor.advance(kMinute);
  REQUIRE(w.durable.size() == all.size());
  // Between nodes the order may change, of each it does not.
  for (const char node : {'a', 'b', 'c'}) {
    Names mine, theirs;
    for (const auto& name : all)
      if (name[0] == node) mine.push_back(name);
    for (const auto& name : w.durable)
      if (name[0] == node) theirs.push_back(name);
    CHECK(mine == theirs);
  }
}

TEST_CASE("rows of one write are all written or none", "[run]") {
  Writer w;
  w.refuse("bad");
  JournalRow good, bad;
  good.run = bad.run = 1;
  good.event = "good";
  bad.event = "bad";
  w.journal.write("a", {good, bad});
  w.write("b", "b1");
  w.reactor.advance(5 * kSecond);
  CHECK(w.written() == Names{"b1"});
}

TEST_CASE("what fails behind a commit leaves nothing else waiting", "[run]") {
  Writer w;
  w.write("a", "a1");
  w.journal.write("b", {}, []() -> void { throw std::runtime_error("meant to be"); });
  w.write("c", "c1");
  w.reactor.advance(kSecond);
  CHECK(w.durable == Names{"a1", "c1"});
}

TEST_CASE("nothing that waits for the disk happens when its writer is gone", "[run]") {
  ManualReactor reactor;
  MemStore store(reactor);
  bool ran = false;
  {
    JournalWriter journal(reactor, store);
    store.fail_next(1, fail(Code::failed, "disk full"));
    journal.write("a", {}, [&] { ran = true; });
  }
  reactor.advance(kMinute);
  CHECK_FALSE(ran);
}
