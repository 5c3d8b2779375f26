// A secret that is replaced and the mark of the nodes that do not have it are one batch: killed anywhere, the
// store has both or neither.
#include "controller/executor/node_changes.h"
#include "tests/unit/run/bench.h"

using namespace muster;

namespace {

struct Bench : testing::RunBench {
  bool durable = false;
  Bench() {
    live();
    for (const char* node : {"node01", "node02", "node03"})
      executor->set_node(NodeName(node), [](NodeRow& row) {
        row.state = NodeState::accepted;
        row.config_digest = "sha256:c";
      });
    executor->set_node("node03", [](NodeRow& row) { row.config_digest.clear(); });
    reactor.advance(100);
  }
  void replace() {
    executor->set_nodes({"node01", "node02", "node03"}, configuration_outdated(),
                        SecretRow{"munge-key", 1, "new"}, [this] { durable = true; });
  }
  bool has_key() { return store.secret("munge-key").ok(); }
  bool is_marked(const char* node) { return is_configuration_outdated(store.node(NodeName(node)).value()); }
};

}  // namespace

TEST_CASE("nodes are outdated together with the secret that was replaced, or not at all", "[run][replace]") {
  Bench b;
  b.replace();
  SECTION("written") {
    b.reactor.advance(100);
    CHECK(b.durable);
    CHECK(b.has_key());
    CHECK(b.is_marked("node01"));
    CHECK(b.is_marked("node02"));
    CHECK_FALSE(b.is_marked("node03"));  // it was never configured, and will be
    // The mark is there once, however often the secret is replaced.
    const std::string once = b.store.node("node01")->config_digest;
    b.replace();
    b.reactor.advance(100);
    CHECK(b.store.node("node01")->config_digest == once);
  }
  SECTION("killed before it is on the disk") {
    b.store.crash(MemStore::Unsynced::lost);
    b.reactor.advance(100);
    CHECK_FALSE(b.durable);
    CHECK_FALSE(b.has_key());
    CHECK_FALSE(b.is_marked("node01"));
    CHECK_FALSE(b.is_marked("node02"));
  }
  SECTION("killed when the disk has it") {
    b.store.crash(MemStore::Unsynced::kept);
    CHECK_FALSE(b.durable);
    CHECK(b.has_key());
    CHECK(b.is_marked("node01"));
    CHECK(b.is_marked("node02"));
  }
  SECTION("refused by a full disk, then written") {
    b.store.crash(MemStore::Unsynced::lost);
    b.live();
    b.store.fail_next(2, fail(Code::failed, "disk full"));  // the second time alone
    b.replace();
    b.reactor.advance(100);
    CHECK_FALSE(b.durable);
    CHECK_FALSE(b.has_key());
    b.reactor.advance(2 * kSecond);
    CHECK(b.durable);
    CHECK(b.has_key());
    CHECK(b.is_marked("node02"));
  }
}
