#include "controller/metrics/service/metrics_service.h"

#include <set>

#include "controller/boot/service/boot_service.h"
#include "controller/current/current_spec.h"
#include "controller/link/storage_reports.h"
#include "controller/metrics/service/metrics_sources.h"
#include "tests/unit/metrics/series.h"
#include "tests/unit/run/bench.h"

using namespace muster;
using testing::action;
using testing::Series;

namespace {

struct Bench : testing::RunBench {
  CurrentSpec spec{store};
  StorageReports storage;
  std::map<std::string, std::string> problems;
  std::vector<Cause> causes;
  int looked = 0;  // how often the causes were gathered for a page
  std::unique_ptr<MetricsService> metrics;

  Bench() {
    add_row("n1", "sha256:old");
    add_row("n2", "sha256:old");
    add_row("n3", "");
    add(action("n1", "steps", ActionKind::steps));
    add(action("n2", "steps", ActionKind::steps));
    live();
    metrics = std::make_unique<MetricsService>(MetricsService::Parts{
        reactor, NodesView({true, reactor, store, spec, *executor, storage, problems}), store, *executor,
        [] {
          return std::map<std::string, TimeMs>{{"ca", 1'000}};
        },
        [] { return nullptr; }, [] { return std::vector<ImageMetrics>(); },
        [this] {
          ++looked;
          return cause_counts(causes);
        },
        [] { return NoticeMetrics(); }});
  }
  void add_row(const std::string& name, const std::string& image) {
    NodeRow row;
    row.name = NodeName(name);
    row.state = image.empty() ? NodeState::discovered : NodeState::accepted;
    row.image_digest = image;
    row.last_seen = reactor.now();
    store.write({row}, [](Status written) { REQUIRE(written.ok()); });
    reactor.advance(100);
  }
  void reports(const std::string& node) { hello(node, wire::Mode::installed, "boot-" + node, "sha256:old"); }
  Series now() {
    reactor.advance(MetricsService::kFresh);
    return Series(metrics->text());
  }
};

}  // namespace

TEST_CASE("metrics: twenty scrapers at once are served from one page, and the next second has another",
          "[metrics]") {
  Bench b;
  const std::string first = b.metrics->text();
  for (int i = 0; i < 19; ++i) CHECK(b.metrics->text() == first);
  CHECK(b.looked == 1);
  b.problems["dhcp"] = "dnsmasq ended";
  b.causes.resize(3);
  b.causes[0].kind = CauseKind::node_silent;
  b.causes[1].kind = CauseKind::node_silent;
  b.causes[2].kind = CauseKind::controller;
  b.reactor.advance(MetricsService::kFresh - 1);
  CHECK(b.metrics->text() == first);
  b.reactor.advance(1);
  const Series second(b.metrics->text());
  CHECK(second.of("muster_problem{topic=\"dhcp\"}") == "1");
  CHECK(second.of("muster_causes{kind=\"node_silent\"}") == "2");
  CHECK(second.of("muster_causes{kind=\"controller\"}") == "1");
  CHECK(second.of("muster_causes{kind=\"receiver\"}") == "0");
  CHECK(b.looked == 2);
  // Freshness is measured by a clock that is not set.
  b.reactor.set_clock(-24 * 60 * kMinute);
  b.reactor.advance(MetricsService::kFresh);
  (void)b.metrics->text();
  CHECK(b.looked == 3);
}

TEST_CASE("metrics: nodes of the store count by their state, machines that are undeclared apart",
          "[metrics]") {
  Bench b;
  b.executor->set_node(NodeName(unknown_name("52:54:00:20:00:09")),
                       [](NodeRow& row) { row.state = NodeState::unadmitted; });
  const Series all = b.now();
  CHECK(all.of("muster_nodes{state=\"accepted\"}") == "2");
  CHECK(all.of("muster_nodes{state=\"discovered\"}") == "1");
  CHECK(all.of("muster_nodes{state=\"unadmitted\"}") == "1");
  CHECK(all.count("muster_node_state") == 3);
  CHECK(all.of("muster_node_state{node=\"n3\",state=\"discovered\"}") == "1");
  CHECK(all.of("muster_certificate_expiration_timestamp_seconds{certificate=\"ca\"}") == "1");
}

TEST_CASE("metrics: a silent node is one that has an agent and does not report", "[metrics]") {
  Bench b;
  b.reports("n1");
  b.reports("n2");
  b.reactor.advance(3 * kMinute);
  b.reports("n1");
  const Series all = b.now();
  CHECK(all.of("muster_node_silent_seconds{node=\"n1\"}") == "0");
  CHECK(std::stod(all.of("muster_node_silent_seconds{node=\"n2\"}")) >= 180);
  CHECK(all.of("muster_node_silent_seconds{node=\"n3\"}") == "0");
}

TEST_CASE("metrics: the certificate that an agent uses has an end, of nodes that there are", "[metrics]") {
  Bench b;
  b.metrics->saw_certificate("n1", 5'000);
  b.metrics->saw_certificate("n1", 7'000);  // renewed
  b.metrics->saw_certificate("gone", 9'000);
  const Series all = b.now();
  CHECK(all.of("muster_agent_certificate_expiration_timestamp_seconds{node=\"n1\"}") == "7");
  CHECK(all.count("muster_agent_certificate_expiration_timestamp_seconds") == 1);
}

TEST_CASE("metrics: a run shows how long nodes have been at their actions, against the others", "[metrics]") {
  Bench b;
  CHECK(b.now().of("muster_run_active") == "0");
  b.executor->start(b.plan, "test", [](Result<int64_t> id) { REQUIRE(id.ok()); });
  b.reactor.advance(100);
  b.hello("n1", wire::Mode::installed, "boot-n1", "sha256:old");
  b.hello("n2", wire::Mode::installed, "boot-n2", "sha256:old");
  REQUIRE(b.offers.count("n1") + b.offers.count("n2") == 2);
  b.reactor.advance(10 * kSecond);
  Series all = b.now();
  CHECK(all.of("muster_run_active") == "1");
  CHECK(all.of("muster_last_run_state{state=\"running\"}") == "1");
  CHECK(all.count("muster_node_action_seconds") == 2);
  CHECK(all.count("muster_node_action_usual_seconds") == 0);
  CHECK(all.of("muster_last_run_end_timestamp_seconds") == "absent");
  b.finish("n1");
  all = b.now();
  CHECK(all.count("muster_node_action_seconds") == 1);
  CHECK(std::stod(all.of("muster_node_action_seconds{node=\"n2\",action=\"steps\"}")) >
        std::stod(all.of("muster_node_action_usual_seconds{node=\"n2\",action=\"steps\"}")));
  b.finish("n2");
  all = b.now();
  CHECK(all.of("muster_run_active") == "0");
  CHECK(all.of("muster_last_run_state{state=\"done\"}") == "1");
  CHECK(all.count("muster_node_action_seconds") == 0);
}

TEST_CASE("metrics: a node whose power a person switches is a manual task", "[metrics][manual]") {
  testing::RunBench b;
  b.persons["n1"] = {"rack 3", 60 * kMinute};
  b.add(action("n1", "netboot", ActionKind::netboot));
  b.add(action("n2", "netboot", ActionKind::netboot));
  b.start();
  b.reactor.advance(kMinute);
  const auto work = b.executor->at_work();
  REQUIRE(work.size() == 2);
  CHECK((work[0].node == "n1" && work[0].by_hand));
  CHECK_FALSE(work[1].by_hand);
  CHECK(work[0].age >= kMinute);
}
