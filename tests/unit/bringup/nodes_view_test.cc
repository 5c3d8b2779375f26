// What operators see of one node: `why` and the status say the same.
#include "controller/bringup/nodes_view.h"

#include "tests/unit/run/bench.h"

using namespace muster;

TEST_CASE("nodes view: why and the status agree on which nodes are silent", "[bringup]") {
  testing::RunBench b;
  b.live();
  const bool installed = GENERATE(true, false);
  b.executor->set_node("n1", [installed](NodeRow& row) {
    row.state = installed ? NodeState::accepted : NodeState::discovered;
    if (installed) row.image_digest = "sha256:x";  // else its RAM system was seen, and no agent stays
    row.last_seen = 1;
  });
  b.reactor.advance(ExecutorTiming().silent_shown + kSecond);
  REQUIRE(b.executor->silent_since("n1") > 0);

  CurrentSpec spec(b.store);
  StorageReports storage;
  std::map<std::string, std::string> problems;
  const auto real = make_reactor(1);
  DaemonOptions options;
  options.state = "/nonexistent";
  const ImageService images(*real, options);
  const NodesView view({false, b.reactor, b.store, spec, *b.executor, storage, problems});
  CHECK(view.node("n1").contains("silent_since") == installed);
  CHECK(view.why("n1", images).contains("silent_since") == installed);
}

TEST_CASE("nodes view: why of a node in service names the cause that it is part of", "[bringup]") {
  testing::RunBench b;
  b.live();
  b.executor->set_node("n1", [](NodeRow& row) {
    row.state = NodeState::accepted;
    row.image_digest = "sha256:x";
  });
  CurrentSpec spec(b.store);
  StorageReports storage;
  std::map<std::string, std::string> problems;
  const auto real = make_reactor(1);
  DaemonOptions options;
  options.state = "/nonexistent";
  const ImageService images(*real, options);
  const NodesView view({false, b.reactor, b.store, spec, *b.executor, storage, problems});
  Cause cause;
  cause.id = "3fa9c0ffee12";
  cause.kind = CauseKind::node_degraded;
  cause.what = "n1 is degraded";
  cause.detail = "storage scratch: /scratch is not mounted";
  cause.next = "muster status";
  cause.nodes.push_back(NodeName("n1"));
  const Json why = view.why("n1", images, &cause);
  CHECK(why["cause"]["id"] == cause.id);
  const std::string text = why["text"].get<std::string>();
  CHECK(text.find(cause.detail) != std::string::npos);
  CHECK(text.find(cause.next) != std::string::npos);
  b.executor->set_node("n1", [](NodeRow& row) { row.state = NodeState::degraded; });
  CHECK(view.why("n1", images, &cause)["text"].get<std::string>().find(cause.detail) == std::string::npos);
}
