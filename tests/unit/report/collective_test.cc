// A failed test of all nodes together: which node the pairs that follow name, and that none is named without
// proof.
#include "controller/report/collective.h"

#include <fmt/format.h>

#include <functional>
#include <set>

#include "controller/locate/pairing.h"
#include "controller/report/link_faults.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;

namespace {

constexpr double kLimit = 10;

Json right(double mbps = 100) {
  return report_sample::measured("allreduce", {{"busbw_mbps", {mbps, "MB/s"}}});
}
Json broken(const std::string& error) {
  return {{"check", "allreduce"}, {"outcome", "failed"}, {"error", error}};
}
Json corrupt() {
  Json out = right();
  out["outcome"] = "corrupt";
  out["error"] = "rank 0 on node01 received 7 wrong elements";
  out["blame"] = {"rank 0 on node01"};
  return out;
}

// A simulated cluster: node01 starts everything; what a test over some of the nodes gives is `test`.
struct Cluster {
  std::vector<std::string> names = {};
  std::function<Json(const std::vector<std::string>& members)> test;
  std::vector<std::string> blocks = {};  // what of it stops a node; empty: everything

  Cluster(int nodes, std::function<Json(const std::vector<std::string>&)> what) : test(std::move(what)) {
    for (int i = 0; i < nodes; ++i) names.push_back(fmt::format("node{:02}", i + 1));
  }
  MeasuredStep run() const {
    MeasuredStep step = report_sample::step("node01", "all-reduce", "All-reduce", "",
                                            {{"busbw_mbps", {{"min", kLimit}}}}, test(names));
    step.mandatory = blocks.empty();
    step.blocks = blocks;
    step.members = names;
    step.rounds = Json::array();
    if (collective_passed(step)) return step;
    for (auto pairs = next_pairs(step); !pairs.empty(); pairs = next_pairs(step)) {
      REQUIRE(step.rounds.size() < 20);
      std::set<std::string> busy;
      Json parts = Json::array();
      for (const auto& [a, b] : pairs) {
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        parts.push_back({{"pair", {a, b}}, {"result", test({a, b})}});
      }
      step.rounds.push_back(parts);
    }
    return step;
  }
};

Report report_on(const Cluster& cluster, const MeasuredStep& step) {
  auto checks = judge_measurements({step});
  find_link_faults(checks, {step}, {});
  Report report;
  for (const auto& name : cluster.names) {
    NodeReport node;
    node.name = name;
    node.verdict = NodeVerdict::accepted;
    Check other;  // a node without a check is not accepted
    other.name = "dgemm/data";
    other.verdict = Verdict::pass;
    node.checks = {other};
    for (auto& check : checks[name]) node.checks.push_back(check);
    report.nodes.push_back(node);
  }
  settle(report);
  return report;
}
std::set<std::string> with_verdict(const Report& report, NodeVerdict verdict) {
  std::set<std::string> out;
  for (const auto& node : report.nodes)
    if (node.verdict == verdict) out.insert(node.name);
  return out;
}
Cluster with_bad(int nodes, const std::set<std::string>& bad, const Json& result) {
  return {nodes, [bad, result](const std::vector<std::string>& members) {
            for (const auto& name : members)
              if (bad.count(name)) return result;
            return right();
          }};
}
using Names = std::set<std::string>;

}  // namespace

TEST_CASE("the node that makes an all-reduce fail is named, whichever node started it", "[collective]") {
  const std::vector<Json> ways = {broken("exit 139"), corrupt(), right(3)};
  const Json& how = ways[static_cast<size_t>(GENERATE(0, 1, 2))];
  const std::string bad = GENERATE(as<std::string>{}, "node01", "node02", "node05", "node08");
  CAPTURE(how.dump(), bad);
  const Cluster cluster = with_bad(8, {bad}, how);
  const MeasuredStep step = cluster.run();
  CHECK(step.rounds.size() <= static_cast<size_t>(locate::log2_up(8) + 2));
  const Report report = report_on(cluster, step);
  CHECK(with_verdict(report, NodeVerdict::failed) == Names{bad});
  CHECK(with_verdict(report, NodeVerdict::accepted).size() == 7);
  for (const auto& node : report.nodes)
    for (const auto& check : node.checks)
      if (check.name == "all-reduce/located") {
        CHECK(node.name == bad);
        CHECK(check.faulty_parts == std::vector<std::string>{bad});
        CHECK(check.evidence["rounds"].size() == step.rounds.size());
      } else {
        CHECK(check.faulty_parts.empty());
      }
}

TEST_CASE("of a test that only wrong data makes stop a node, wrong data does so and slowness does not",
          "[collective]") {
  for (const Json& how : {corrupt(), broken("exit 139")}) {
    CAPTURE(how.dump());
    Cluster cluster = with_bad(8, {"node05"}, how);
    cluster.blocks = {"data"};
    const Report report = report_on(cluster, cluster.run());  // its figures, which are missing, stop no node
    CHECK(with_verdict(report, NodeVerdict::failed) == Names{"node05"});
    CHECK(with_verdict(report, NodeVerdict::accepted).size() == 7);
  }
  Cluster slow = with_bad(8, {"node05"}, right(3));
  slow.blocks = {"data"};
  CHECK(with_verdict(report_on(slow, slow.run()), NodeVerdict::accepted).size() == 8);
}

TEST_CASE("several faulty nodes of many are named, in log2 N + 2 rounds, and no other", "[collective]") {
  for (const int nodes : {16, 64}) {
    locate::Numbers numbers(static_cast<uint64_t>(nodes));
    for (int trial = 0; trial < 30; ++trial) {
      Names bad;
      while (bad.size() < static_cast<size_t>(nodes / 20 + 1))
        bad.insert(fmt::format("node{:02}", numbers.below(static_cast<size_t>(nodes)) + 1));
      const Cluster cluster = with_bad(nodes, bad, broken("exit 1"));
      const MeasuredStep step = cluster.run();
      CHECK(step.rounds.size() <= static_cast<size_t>(locate::log2_up(nodes) + 2));
      const Report report = report_on(cluster, step);
      CHECK(with_verdict(report, NodeVerdict::failed) == bad);
      CHECK(with_verdict(report, NodeVerdict::degraded).empty());
    }
  }
}

TEST_CASE("three nodes are enough to name one, two are not", "[collective]") {
  const Cluster three = with_bad(3, {"node01"}, broken("exit 1"));
  CHECK(with_verdict(report_on(three, three.run()), NodeVerdict::failed) == Names{"node01"});

  const Cluster two = with_bad(2, {"node02"}, broken("exit 1"));
  const Report report = report_on(two, two.run());
  CHECK(with_verdict(report, NodeVerdict::failed).empty());
  CHECK(with_verdict(report, NodeVerdict::degraded) == Names{"node01", "node02"});
  CHECK(report.nodes[0].reason.find("not located: ") != std::string::npos);
}

TEST_CASE("what fails only with all nodes together counts for no node in particular", "[collective]") {
  const Cluster cluster(8, [](const auto& members) { return members.size() > 2 ? broken("hung") : right(); });
  const Report report = report_on(cluster, cluster.run());
  CHECK(with_verdict(report, NodeVerdict::failed).empty());
  CHECK(with_verdict(report, NodeVerdict::degraded).size() == 8);  // nor is it accepted
  for (const auto& node : report.nodes) {
    CHECK(node.reason.find("not located: all-reduce across 8 nodes: hung; all ") != std::string::npos);
    for (const auto& check : node.checks) CHECK(check.faulty_parts.empty());
  }
}

TEST_CASE("a node that cannot start anything does not make the others count as faulty", "[collective]") {
  const Cluster cluster(8, [](const auto&) { return broken("mpirun: command failed"); });
  const Report report = report_on(cluster, cluster.run());
  CHECK(with_verdict(report, NodeVerdict::failed).empty());
  CHECK(with_verdict(report, NodeVerdict::degraded).size() == 8);
  CHECK(report.nodes[4].reason.find("no pair passes, and node01 started every pair's test") !=
        std::string::npos);
}

TEST_CASE("a path between two nodes that are good with all others leaves only these two open",
          "[collective]") {
  const Cluster cluster(8, [](const std::vector<std::string>& members) {
    const Names names(members.begin(), members.end());
    return names.count("node03") && names.count("node06") ? broken("timeout") : right();
  });
  const MeasuredStep step = cluster.run();
  bool met = false;
  for (const auto& round : step.rounds)
    for (const auto& part : round)
      met = met || Names{part["pair"][0].get<std::string>(), part["pair"][1].get<std::string>()} ==
                       Names{"node03", "node06"};
  const Report report = report_on(cluster, step);
  CHECK(with_verdict(report, NodeVerdict::failed).empty());
  const Names degraded = with_verdict(report, NodeVerdict::degraded);
  if (met)
    CHECK(degraded == Names{"node03", "node06"});
  else
    CHECK(degraded.size() == 8);
}

TEST_CASE("pairs that fail with a node that others do not reach leave no other node open", "[collective]") {
  // node03 reaches node02, and node01 does not reach node03: it depends on who opens the connection.
  const auto broken_with = [](const Json& how) {
    return Cluster(3, [how](const std::vector<std::string>& members) {
      const Names names(members.begin(), members.end());
      return names.count("node01") && names.count("node03") ? how : right();
    });
  };
  const auto degraded = [](const Cluster& cluster, const FaultyLinks& links) {
    const MeasuredStep step = cluster.run();
    auto checks = judge_measurements({step});
    find_collective_faults(checks, {step}, links);
    Names out;
    for (const auto& [node, list] : checks)
      for (const auto& check : list)
        if (check.name == "all-reduce/located") out.insert(node);
    return out;
  };
  const Cluster late = broken_with(broken("rank 2 on node03 did not connect in time"));
  const FaultyLinks cut_off{"link of node03, receiving", {"node03"}};
  CHECK(degraded(late, cut_off).empty());
  CHECK(degraded(late, {}) == Names{"node01", "node03"});
  CHECK(degraded(late, {"link of node02, receiving", {"node02"}}) == Names{"node01", "node03"});
  CHECK(degraded(broken_with(corrupt()), cut_off) ==
        Names{"node01", "node03"});  // wrong data is no firewall's
}

TEST_CASE("wrong data of all nodes together is explained by a node that is known to damage data",
          "[collective]") {
  const std::string bad = "node04";
  // Few bytes are damaged: no pair of the second test meets one.
  const auto only_together = [](const Json& how) {
    return Cluster(8, [how](const auto& members) { return members.size() > 2 ? how : right(); });
  };
  const auto open_nodes = [](const std::vector<MeasuredStep>& steps, const FaultyLinks& links) {
    auto checks = judge_measurements(steps);
    find_collective_faults(checks, steps, links);
    Names out;
    for (const auto& [node, list] : checks)
      for (const auto& check : list)
        if (check.name == "training load/located") out.insert(node);
    return out;
  };
  const auto training = [](const Cluster& cluster) {
    MeasuredStep step = cluster.run();
    step.group = "training load";
    return step;
  };
  const MeasuredStep wrong = training(only_together(corrupt()));
  const FaultyLinks link{"link of node04, both directions", {}, {bad}};
  CHECK(open_nodes({wrong}, {}).size() == 8);
  CHECK(open_nodes({wrong}, link).empty());
  CHECK(open_nodes({wrong}, {"link of node04, sending", {bad}, {}}).size() == 8);  // slow, not damaged
  CHECK(open_nodes({wrong}, {"link of node09, both directions", {}, {"node09"}}).size() == 8);
  // Another test isolated it: before, or afterwards.
  const MeasuredStep located = with_bad(8, {bad}, corrupt()).run();
  CHECK(open_nodes({located, wrong}, {}).empty());
  CHECK(open_nodes({wrong, located}, {}).empty());
  CHECK(open_nodes({with_bad(8, {bad}, broken("exit 1")).run(), wrong}, {}).size() == 8);
  // Not all that is wrong is wrong through this node, or it was not shown that the others are right.
  MeasuredStep unpaired = wrong;
  unpaired.rounds = Json::array();
  CHECK(open_nodes({unpaired}, link).size() == 8);
  MeasuredStep others = wrong;
  others.rounds[0][0]["pair"] = {"node01", "node02"};
  others.rounds[0][0]["result"] = corrupt();
  CHECK(open_nodes({others}, link).count("node02") == 1);
  const MeasuredStep hung = training(only_together(broken("hung")));
  CHECK(open_nodes({hung}, {"", {}, {bad}}).size() == 8);
}

TEST_CASE("a limit that is derived from the inventory counts for pairs as for the whole", "[collective]") {
  HardwareFacts facts;
  facts.gpus.resize(8);
  for (auto& gpu : facts.gpus) gpu.model = "NVIDIA H200";
  const FactsByNode by_node = {{"node01", &facts}};
  const auto test = [](const std::vector<std::string>& members) {
    const auto n = static_cast<double>(members.size());
    const bool slow = std::count(members.begin(), members.end(), "node03") > 0;
    return report_sample::measured("nccl",
                                   {{"ranks", {n, "ranks"}},
                                    {"gpus", {8 * n, "ranks"}},
                                    {"all_reduce_busbw_gbps", {slow ? 100.0 : 350.0, "GB/s"}}},
                                   {{"algorithm", "Ring"}, {"rails", std::vector<double>(8, 400)}});
  };
  const std::vector<std::string> names = {"node01", "node02", "node03", "node04"};
  MeasuredStep step = report_sample::step(
      "node01", "nccl", "nccl", "", {{"all_reduce_busbw_gbps", {{"derive", "nccl_bus"}, {"ratio", 0.85}}}},
      test(names));
  step.members = names;
  step.rounds = Json::array();
  CHECK(collective_passed(step));  // without the inventory there is no limit
  REQUIRE_FALSE(collective_passed(step, by_node));
  for (auto pairs = next_pairs(step, by_node); !pairs.empty(); pairs = next_pairs(step, by_node)) {
    REQUIRE(step.rounds.size() < 10);
    Json parts = Json::array();
    for (const auto& [a, b] : pairs) parts.push_back({{"pair", {a, b}}, {"result", test({a, b})}});
    step.rounds.push_back(parts);
  }
  CHECK(step.rounds.size() >= 2);
  Comparison with;
  with.facts = by_node;
  auto checks = judge_measurements({step}, with);
  find_link_faults(
      checks, {step}, [](const std::string&) { return ""; }, by_node);
  CHECK(std::any_of(checks["node03"].begin(), checks["node03"].end(), [](const Check& c) {
    return c.name == "nccl/located" && c.faulty_parts.front() == "node03";
  }));
  CHECK(checks["node02"].empty());
  CHECK(checks["node04"].empty());
}

TEST_CASE("a program that is missing everywhere is not repeated in pairs, and counts for no node",
          "[collective]") {
  Json nowhere = report_sample::measured("nccl", {});
  nowhere["outcome"] = "unavailable";
  nowhere["error"] = "node01: muster-accept-gpu is not on this node";
  MeasuredStep step = report_sample::step("node01", "nccl", "nccl", "", {{"ranks", {{"min", 2}}}}, nowhere);
  step.mandatory = false;
  step.members = {"node01", "node02", "node03"};
  step.rounds = Json::array();
  CHECK(could_not_run(step));
  CHECK(next_pairs(step).empty());
  auto checks = judge_measurements({step});
  find_link_faults(checks, {step}, {});
  CHECK(checks["node02"].empty());
  CHECK(checks["node03"].empty());
  REQUIRE_FALSE(checks["node01"].empty());
  for (const auto& check : checks["node01"]) CHECK(check.verdict == Verdict::skipped);
}

TEST_CASE("one that passes asks for no pairs; rounds without a usable answer end the search",
          "[collective]") {
  const Cluster good(8, [](const auto&) { return right(); });
  const MeasuredStep fine = good.run();
  CHECK(fine.rounds.empty());
  CHECK(with_verdict(report_on(good, fine), NodeVerdict::accepted).size() == 8);

  MeasuredStep step = with_bad(8, {"node02"}, broken("x")).run();
  step.rounds = Json::array();
  CHECK_FALSE(next_pairs(step).empty());
  for (const Json& hostile :
       {Json::array(), Json{{{"pair", {"node02", "stranger"}}, {"result", broken("x")}}},
        Json{{{"pair", {"node02", "node02"}}, {"result", broken("x")}}}, Json{{{"pair", 7}}},
        Json("words")}) {
    step.rounds = Json::array({hostile});
    CHECK(next_pairs(step).empty());
  }
}

TEST_CASE("a test of several nodes whose others left the run counts for nothing, unless its data was wrong",
          "[collective]") {
  Cluster alone(1, [](const auto&) { return right(0); }), wrong(1, [](const auto&) { return corrupt(); });
  Cluster failed(1, [](const auto&) { return broken("no route to host"); });
  for (const Cluster* cluster : {&alone, &failed}) {
    const Report report = report_on(*cluster, cluster->run());
    CHECK(with_verdict(report, NodeVerdict::accepted) == Names{"node01"});
    REQUIRE(report.nodes[0].checks.size() == 2);
    CHECK(report.nodes[0].checks[1].verdict == Verdict::not_applicable);
  }
  CHECK(with_verdict(report_on(wrong, wrong.run()), NodeVerdict::accepted).empty());
}
