// The verdict as the worst of limits, derived values, fleet and history; and who is blamed for a slow link.
#include "controller/hosts/hosts_spec.h"
#include "controller/report/expected.h"
#include "controller/report/history.h"
#include "controller/report/link_faults.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

using Judged = std::map<std::string, std::vector<Check>>;

const Check& get(const Judged& judged, const std::string& node, const std::string& name,
                 const std::string& subject = "") {
  for (const auto& check : judged.at(node))
    if (check.name == name && check.subject == subject) return check;
  static const Check kNone;
  FAIL("no check " << name << " of " << node << " with " << subject);
  return kNone;
}

std::vector<MeasuredStep> fleet(const Json& expect, const std::vector<double>& values) {
  std::vector<MeasuredStep> out;
  for (size_t i = 0; i < values.size(); ++i)
    out.push_back(step("n" + std::to_string(i), "dgemm", "", "", expect,
                       measured("dgemm", {{"gflops", {values[i], "GFLOP/s"}}})));
  return out;
}

History past(const std::vector<std::tuple<std::string, int64_t, double>>& values) {
  History out;
  for (const auto& [node, run, value] : values) {
    PastValue v;
    v.run = run;
    v.value = value;
    v.good = true;
    out.nodes[node][{"dgemm/gflops", ""}].push_back(v);
  }
  return out;
}

// One step per node with all its peers; rate(from, to) in MB/s.
template <typename Rate>
std::vector<MeasuredStep> links(const std::vector<std::string>& nodes, Rate rate) {
  const Json expect = Json::parse(
      R"({"send_mbps":{"min":1,"fleet_min_ratio":0.6,"unit":"MB/s"},"receive_mbps":{"min":1,"fleet_min_ratio":0.6,"unit":"MB/s"}})");
  std::vector<MeasuredStep> out;
  for (const auto& a : nodes) {
    Json parts = Json::array();
    for (const auto& b : nodes)
      if (a != b)
        parts.push_back(
            {{"subject", b},
             {"result",
              measured("link", {{"send_mbps", {rate(a, b), "MB/s"}}, {"receive_mbps", {rate(b, a), "MB/s"}}},
                       {{"to", b}})}});
    out.push_back(step(a, "links", "Links", "", expect, {{"check", "links"}, {"parts", parts}}));
  }
  return out;
}

Judged judged_links(const std::vector<MeasuredStep>& steps) {
  auto judged = judge_measurements(steps);
  find_link_faults(judged, steps, [](const std::string& node) { return "NIC of " + node; });
  return judged;
}

NodeVerdict settled(const std::string& name, const Judged& judged) {
  Report r;
  r.nodes.push_back({});
  r.nodes[0].name = name;
  r.nodes[0].verdict = NodeVerdict::accepted;
  r.nodes[0].checks = judged.at(name);
  settle(r);
  return r.nodes[0].verdict;
}

}  // namespace

TEST_CASE("the executor judges only what one node proves alone, and never more strictly than the report") {
  const Json expect = Json::parse(R"({"gflops":{"min":10,"fleet_min_ratio":0.9,"history_min_ratio":0.9}})");
  Comparison own;
  own.own_only = true;
  auto steps = fleet(expect, {100, 101, 50, 5});
  const auto alone = judge_measurements(steps, own), together = judge_measurements(steps);
  CHECK(get(alone, "n2", "dgemm/gflops").verdict == Verdict::pass);
  CHECK(get(together, "n2", "dgemm/gflops").verdict == Verdict::degraded);
  CHECK(get(alone, "n3", "dgemm/gflops").verdict == Verdict::fail);
  CHECK(get(together, "n3", "dgemm/gflops").verdict == Verdict::fail);
  // Four links of one node are no fleet, and have another end.
  const auto pairs =
      links({"a", "b", "c", "d"}, [](const auto& from, const auto&) { return from == "b" ? 0.1 : 10.0; });
  CHECK(judge_measurements({pairs[0]}, own).at("a").empty());
}

TEST_CASE("from eight values on the fleet's spread counts, and a slow part does not hide in it") {
  const Json expect = Json::parse(R"({"gflops":{"fleet_min_ratio":0.98}})");
  // MAD 2: 100 - 4 x 1.4826 x 2 = 88.1. 95 is noise, 80 is not.
  const auto judged = judge_measurements(fleet(expect, {100, 102, 98, 103, 97, 101, 99, 95, 80}));
  CHECK(get(judged, "n7", "dgemm/gflops").verdict == Verdict::pass);
  CHECK(get(judged, "n8", "dgemm/gflops").verdict == Verdict::degraded);
  CHECK(get(judged, "n8", "dgemm/gflops").derivation.find("MAD") != std::string::npos);
  // Eight equal links: MAD alone would flag a tenth of a percent.
  const auto equal = judge_measurements(fleet(expect, {55.4, 55.4, 55.4, 55.4, 55.4, 55.4, 55.4, 55.3}));
  CHECK(get(equal, "n7", "dgemm/gflops").verdict == Verdict::pass);
}

TEST_CASE("equal parts are compared with equal parts only") {
  const Json expect = Json::parse(R"({"gflops":{"fleet_min_ratio":0.8}})");
  auto steps = fleet(expect, {100, 100, 100, 20, 20, 20});
  for (size_t i = 3; i < 6; ++i) steps[i].like = "the slow model";
  const auto judged = judge_measurements(steps);
  for (const char* node : {"n0", "n3"}) CHECK(get(judged, node, "dgemm/gflops").verdict == Verdict::pass);
}

TEST_CASE("nodes are compared with machines of their kind, now and before") {
  HardwareFacts large, small;
  large.cpus.model = "a large processor";
  small.cpus.model = "a small processor";
  Comparison with;
  for (const char* node : {"n0", "n1", "n2", "n4"}) with.facts[node] = &large;
  with.facts["n3"] = &small;
  const auto steps = fleet(Json::parse(R"({"gflops":{"fleet_min_ratio":0.9}})"), {100, 101, 99, 20, 80});
  const auto judged = judge_measurements(steps, with);
  CHECK(get(judged, "n0", "dgemm/gflops").verdict == Verdict::pass);
  CHECK(get(judged, "n4", "dgemm/gflops").verdict == Verdict::degraded);
  const Check& head = get(judged, "n3", "dgemm/gflops");
  CHECK(head.verdict == Verdict::not_judged);
  CHECK(head.uncompared);
  // What others did before counts by the same kind.
  History history = past({{"n7", 4, 21}, {"n8", 4, 22}});
  with.history = &history;
  CHECK(get(judge_measurements(steps, with), "n3", "dgemm/gflops").verdict == Verdict::not_judged);
  for (const char* node : {"n7", "n8"})
    history.nodes[node].begin()->second.front().kind = get(judged, "n3", "dgemm/gflops").kind;
  CHECK(get(judge_measurements(steps, with), "n3", "dgemm/gflops").verdict == Verdict::pass);
}

TEST_CASE("a file system is compared with those at its mount on as many drives of these models") {
  HardwareFacts flash, disks;
  flash.disks.resize(2);
  flash.disks[0].serial = "S0", flash.disks[0].model = "flash";
  flash.disks[1].serial = "S1", flash.disks[1].model = "a disk";
  disks = flash;
  disks.disks[0].model = "a disk";
  const Json expect = Json::parse(R"({"read_mbps":{"fleet_min_ratio":0.85}})");
  std::vector<MeasuredStep> steps;
  Comparison with;
  const auto add = [&](const std::string& node, const HardwareFacts& facts, double scratch) {
    with.facts[node] = &facts;
    for (const auto& [mount, serial, mbps] :
         {std::tuple("/scratch", "S0", scratch), std::tuple("/bulk", "S1", 200.0)})
      steps.push_back(
          step(node, "local storage", "", mount, expect,
               measured("fio", {{"read_mbps", {mbps, "MB/s"}}}, {{"drives", Json::array({serial})}})));
  };
  for (const char* node : {"a", "b", "c"}) add(node, flash, 6000);
  add("slow", flash, 3000);
  for (const char* node : {"d", "e", "f"}) add(node, disks, 210);
  const auto judged = judge_measurements(steps, with);
  for (const char* node : {"a", "d", "slow"})
    CHECK(get(judged, node, "local storage/read_mbps", "/bulk").verdict == Verdict::pass);
  for (const char* node : {"a", "d"})
    CHECK(get(judged, node, "local storage/read_mbps", "/scratch").verdict == Verdict::pass);
  CHECK(get(judged, "slow", "local storage/read_mbps", "/scratch").verdict == Verdict::degraded);
}

TEST_CASE("a node measured alone is compared with what the others did before") {
  const Json expect = Json::parse(R"({"gflops":{"fleet_min_ratio":0.8}})");
  const History history = past({{"n1", 4, 100}, {"n2", 4, 102}, {"n3", 3, 98}, {"n0", 4, 1}});
  Comparison with;
  with.history = &history;
  const auto judged = judge_measurements(fleet(expect, {60}), with);
  CHECK(get(judged, "n0", "dgemm/gflops").verdict == Verdict::degraded);
  CHECK(get(judged, "n0", "dgemm/gflops").derivation.find("3 of them from earlier runs") !=
        std::string::npos);
}

TEST_CASE("slower than itself before is degraded; the history is shown") {
  const Json expect = Json::parse(R"({"gflops":{"history_min_ratio":0.9}})");
  const History history = past({{"n0", 5, 100}, {"n0", 4, 101}, {"n0", 2, 99}});
  Comparison with;
  with.history = &history;
  const auto judged = judge_measurements(fleet(expect, {85}), with);
  const Check& slow = get(judged, "n0", "dgemm/gflops");
  CHECK(slow.verdict == Verdict::degraded);
  CHECK(slow.derivation == "0.9 x median 100 GFLOP/s of its own 3 earlier values = 90 GFLOP/s");
  REQUIRE(slow.history.size() == 3);
  CHECK(slow.history[0].run == 5);
  CHECK(get(judge_measurements(fleet(expect, {91}), with), "n0", "dgemm/gflops").verdict == Verdict::pass);
  CHECK(get(judge_measurements(fleet(expect, {5})), "n0", "dgemm/gflops").verdict == Verdict::pass);
}

TEST_CASE("hardware that no majority declares is held against what the same host had") {
  NodeSpec spec;
  spec.adopt.host_key = no_host_key();
  HardwareFacts facts;
  facts.gpus.resize(8);
  facts.memory_bytes = uint64_t{1024} << 30;
  const auto run = [&](const History& history) {
    Report r;
    r.nodes.resize(1);
    NodeReport& node = r.nodes[0];
    node.name = "gpu07";
    node.verdict = NodeVerdict::accepted;
    node.checks = judge_hardware(spec, &facts);
    compare_hardware(node, history);
    return r;
  };
  const auto gpus = [](const Report& r) {
    for (const auto& check : r.nodes[0].checks)
      if (check.name == "hardware/gpus") return check;
    return Check();
  };
  History history;
  const Report first = run(history);
  CHECK(gpus(first).verdict == Verdict::not_applicable);  // the first run has nothing to compare with
  REQUIRE(add_history(history, 3, measured_text(first)).ok());
  CHECK(gpus(run(history)).verdict == Verdict::pass);
  facts.gpus.resize(7);
  const Check lost = gpus(run(history));
  CHECK(lost.verdict == Verdict::degraded);
  CHECK(lost.mandatory);
  CHECK(lost.reason == "7 of the 8 GPUs that the node had in run 3");
  // What a run found short is no history, whatever came after it.
  History later;
  REQUIRE(add_history(later, 4, measured_text(run(history))).ok());
  REQUIRE(add_history(later, 3, measured_text(first)).ok());
  CHECK(gpus(run(later)).verdict == Verdict::degraded);
  facts.gpus.resize(9);
  CHECK(gpus(run(later)).verdict == Verdict::pass);
  // A spec that people wrote declares it or leaves it open.
  spec.adopt.host_key.clear();
  CHECK_FALSE(gpus(run(history)).measured);
}

TEST_CASE("what is kept of a run is read back, and bad values are no history") {
  Report r;
  r.nodes.resize(2);
  Check check;
  check.name = "drives/read_mbps";
  check.subject = "S1";
  check.like = "PM9A3";
  check.kind = "a machine";
  check.measured = 90;
  check.verdict = Verdict::pass;
  r.nodes[0].name = "a";
  r.nodes[0].verdict = NodeVerdict::accepted;
  r.nodes[0].checks = {check};
  r.nodes[1] = r.nodes[0];
  r.nodes[1].name = "b";
  r.nodes[1].verdict = NodeVerdict::degraded;
  r.nodes[1].checks[0].verdict = Verdict::degraded;
  r.nodes[1].checks[0].reason = "90 is below 100";
  r.nodes[1].checks[0].faulty_parts = {"drive S1"};
  History history;
  REQUIRE(add_history(history, 7, measured_text(r)).ok());
  REQUIRE(history.of("a", "drives/read_mbps", "S1").size() == 1);
  CHECK(history.of("a", "drives/read_mbps", "S1")[0].good);
  CHECK(history.of("a", "drives/read_mbps", "S1")[0].like == "PM9A3");
  CHECK(history.of("a", "drives/read_mbps", "S1")[0].kind == "a machine");
  CHECK_FALSE(history.of("b", "drives/read_mbps", "S1")[0].good);
  CHECK(history.of("c", "drives/read_mbps", "S1").empty());
  CHECK_FALSE(add_history(history, 8, "{").ok());
  CHECK_FALSE(add_history(history, 8, R"({"a":[{"check":1}]})").ok());

  SECTION("what was slow stays slow until it is measured again") {
    NodeReport now;
    now.name = "b";
    now.verdict = NodeVerdict::accepted;
    carry_over(now, history);
    REQUIRE(now.checks.size() == 1);
    CHECK(now.checks[0].verdict == Verdict::degraded);
    CHECK(now.checks[0].faulty_parts == std::vector<std::string>{"drive S1"});
    CHECK(now.checks[0].reason == "not measured in this run; in run 7: 90 is below 100");
    // Carried again, it is still run 7's.
    r.nodes = {now};
    History later;
    REQUIRE(add_history(later, 9, measured_text(r)).ok());
    CHECK(later.of("b", "drives/read_mbps", "S1")[0].run == 7);
  }
  SECTION("what another machine under that name measured is not held against this one") {
    drop_until(history, "b", 7);
    drop_until(history, "c", 7);
    NodeReport now;
    now.name = "b";
    carry_over(now, history);
    CHECK(now.checks.empty());
    CHECK(history.of("b", "drives/read_mbps", "S1").empty());
    CHECK(history.of("a", "drives/read_mbps", "S1").size() == 1);
  }
  SECTION("what was measured since, and was fine, is not held against it: links that are have no finding") {
    NodeReport fine;
    fine.name = "b";
    check.subject = "S2";
    fine.checks = {check};
    Report later = r;
    later.nodes = {fine};
    History since;
    REQUIRE(add_history(since, 9, measured_text(later)).ok());
    REQUIRE(add_history(since, 7, measured_text(r)).ok());
    NodeReport now;
    now.name = "b";
    carry_over(now, since);
    CHECK(now.checks.empty());
  }
  SECTION("measured again, also as another part, it is forgotten") {
    NodeReport now;
    now.name = "b";
    check.subject = "S2";
    now.checks = {check};
    carry_over(now, history);
    CHECK(now.checks.size() == 1);
  }
}

TEST_CASE("a node with a slow receiving side is named, its partners are not") {
  const std::vector<std::string> nodes = {"node01", "node02", "node03"};
  const auto steps = links(nodes, [](const auto&, const auto& to) { return to == "node02" ? 3.0 : 9.0; });
  const auto judged = judged_links(steps);
  const Check& located = get(judged, "node02", "links/located", "receiving");
  CHECK(located.verdict == Verdict::degraded);
  CHECK(located.faulty_parts == std::vector<std::string>{"link of node02 (NIC of node02), receiving"});
  CHECK(located.reason == "slow with 2 of 2 partners: 3 MB/s with node01, node03");
  CHECK(settled("node02", judged) == NodeVerdict::degraded);
  CHECK(settled("node01", judged) == NodeVerdict::accepted);
  CHECK(settled("node03", judged) == NodeVerdict::accepted);
  CHECK(get(judged, "node01", "links/send_mbps", "node02").reason.find("explained by: link of node02") !=
        std::string::npos);
}

TEST_CASE("a link that damages data explains a load of all nodes whose data was wrong, and no other node") {
  const std::vector<std::string> nodes = {"node01", "node02", "node03"};
  auto steps = links(nodes, [](const auto&, const auto&) { return 9.0; });
  const auto damaged = [&](const std::string& outcome) {
    for (auto& step : steps)
      for (auto& part : step.result["parts"])
        if (step.node == "node02" || part["subject"] == "node02") {
          part["result"]["outcome"] = outcome;
          part["result"]["metrics"] = Json::object();
          part["result"]["error"] = "received data: 3 of 9 chunks arrived damaged";
        }
  };
  const auto load = measured("training", {{"ranks", {3, ""}}});
  auto all = step("node01", "training load", "Training load", "", Json::object(), load);
  all.members = nodes;
  all.result["outcome"] = "corrupt";
  all.result["error"] = "rank 0 on node01 has 1 wrong gradients";
  all.rounds = Json::array({Json::array({{{"pair", {"node01", "node02"}}, {"result", load}}}),
                            Json::array({{{"pair", {"node02", "node03"}}, {"result", load}}})});
  steps.push_back(all);
  SECTION("damaged") {
    damaged("corrupt");
    const auto judged = judged_links(steps);
    CHECK(settled("node01", judged) == NodeVerdict::accepted);
    CHECK(settled("node02", judged) == NodeVerdict::failed);
    CHECK(settled("node03", judged) == NodeVerdict::accepted);
  }
  SECTION("a link that is merely not there damages nothing") {
    damaged("failed");
    const auto judged = judged_links(steps);
    CHECK(settled("node01", judged) == NodeVerdict::degraded);
    CHECK(settled("node03", judged) == NodeVerdict::degraded);
  }
}

TEST_CASE(
    "of three nodes one has a link at a third, both ways: two pairs of three are slow, and one node is "
    "named") {
  const std::vector<std::string> nodes = {"node01", "node02", "node03"};
  for (const auto& bad : nodes) {
    const auto judged = judged_links(
        links(nodes, [&](const auto& from, const auto& to) { return from == bad || to == bad ? 3.0 : 9.0; }));
    for (const auto& node : nodes)
      CHECK(settled(node, judged) == (node == bad ? NodeVerdict::degraded : NodeVerdict::accepted));
    const std::string& derivation = get(judged, "node01", "links/send_mbps", "node02").derivation;
    CHECK(derivation.find(
              "0.6 x 9 MB/s, which a healthy pair reaches (from the best of 6 values at each end)") !=
          std::string::npos);
  }
}

TEST_CASE("a dead link fails its own node only; a slow path counts for both of its ends and no other node") {
  const std::vector<std::string> nodes = {"a", "b", "c", "d"};
  const auto dead = judged_links(
      links(nodes, [](const auto& from, const auto& to) { return from == "c" || to == "c" ? 0.01 : 9.0; }));
  CHECK(settled("c", dead) == NodeVerdict::failed);
  for (const char* node : {"a", "b", "d"}) CHECK(settled(node, dead) == NodeVerdict::accepted);

  const auto path = judged_links(
      links(nodes, [](const auto& from, const auto& to) { return from == "a" && to == "b" ? 3.0 : 9.0; }));
  CHECK(settled("a", path) == NodeVerdict::degraded);
  CHECK(settled("b", path) == NodeVerdict::degraded);
  CHECK(get(path, "a", "links/located", "sending").faulty_parts.size() == 2);
  for (const char* node : {"c", "d"}) CHECK(settled(node, path) == NodeVerdict::accepted);

  const auto fine = judged_links(links(nodes, [](const auto&, const auto&) { return 9.0; }));
  for (const auto& node : nodes) CHECK(settled(node, fine) == NodeVerdict::accepted);
}

TEST_CASE("a link that was slow once of twice is not a slow link; one that broke once is") {
  const std::vector<std::string> nodes = {"a", "b", "c"};
  auto steps = links(nodes, [](const auto&, const auto&) { return 9.0; });
  // b measured what it got from a in a bad moment; a measured the same direction, and it was fast.
  Json& part = steps[1].result["parts"][0];
  REQUIRE(part["subject"] == "a");
  part["result"]["metrics"]["receive_mbps"]["value"] = 4.0;
  const auto judged = judged_links(steps);
  for (const auto& node : nodes) CHECK(settled(node, judged) == NodeVerdict::accepted);
  const Check& noted = get(judged, "b", "links/receive_mbps", "a");
  CHECK(noted.measured == 4.0);
  CHECK(noted.derivation.find("9 MB/s (from a)") != std::string::npos);
  for (const auto& link : link_matrix(steps, nodes, {{"a", "a"}, {"b", "b"}, {"c", "c"}})) {
    CHECK(link.mbps == 9.0);
    CHECK(link.verdict == Verdict::pass);
  }
  // Slow both times: nothing is taken back.
  steps[0].result["parts"][0]["result"]["metrics"]["send_mbps"]["value"] = 4.0;
  CHECK(settled("b", judged_links(steps)) == NodeVerdict::degraded);
  // Under the profile's own floor once is a failure, whatever the other end saw.
  steps[0].result["parts"][0]["result"]["metrics"]["send_mbps"]["value"] = 9.0;
  part["result"]["metrics"]["receive_mbps"]["value"] = 0.5;
  CHECK(settled("b", judged_links(steps)) != NodeVerdict::accepted);
}

TEST_CASE(
    "RDMA links are weighed rail by rail: a slow rail is named by its device, and the other rails of that "
    "node are not") {
  const std::vector<std::string> nodes = {"node01", "node02", "node03"};
  const Json expect = Json::parse(
      R"({"send_gbps":{"derive":"rdma_payload","ratio":0.92,"fleet_min_ratio":0.9},"receive_gbps":{"derive":"rdma_payload","ratio":0.92,"fleet_min_ratio":0.9}})");
  REQUIRE(check_expectations(expect).ok());
  const auto steps = [&](const std::string& bad, bool gone) {
    std::vector<MeasuredStep> out;
    for (const auto& a : nodes) {
      Json parts = Json::array();
      for (const auto& b : nodes)
        for (int rail = 0; rail < 2 && a != b; ++rail) {
          const bool slow = rail == 1 && (a == bad || b == bad);
          const std::string device = "mlx5_" + std::to_string(rail);
          Json one = measured(
              "rdma-link",
              {{"send_gbps", {slow ? 60 : 195, "Gb/s"}}, {"receive_gbps", {slow ? 60 : 195, "Gb/s"}}},
              {{"device", device},
               {"peer_device", device},
               {"rate_gbps", 200},
               {"mtu", 4096},
               {"link_layer", "InfiniBand"}});
          if (slow && gone) {
            one["outcome"] = "unavailable", one["error"] = "no active port", one["metrics"] = Json::object();
            one["detail"]["at_fault"] = a == bad ? "here" : "peer";
          }
          parts.push_back({{"subject", b}, {"like", "rail " + std::to_string(rail)}, {"result", one}});
        }
      out.push_back(step(a, "rdma", "RDMA", "", expect, {{"check", "rdma"}, {"parts", parts}}));
    }
    return out;
  };
  const auto slow = judged_links(steps("node02", false));
  const Check& located = get(slow, "node02", "rdma/located", "rail 1, sending");
  CHECK(located.verdict == Verdict::degraded);
  CHECK(located.faulty_parts == std::vector<std::string>{"link of node02 (mlx5_1, rail 1), sending"});
  CHECK(located.reason == "slow with 2 of 2 partners: 60 Gb/s with node01, node03");
  for (const auto& check : slow.at("node02"))
    CHECK((check.like != "rail 0" || check.verdict == Verdict::pass));
  CHECK(get(slow, "node01", "rdma/send_gbps", "node02, rail 1")
            .reason.find("explained by: link of node02 (mlx5_1, rail 1)") != std::string::npos);
  CHECK(settled("node02", slow) == NodeVerdict::degraded);
  CHECK(settled("node01", slow) == NodeVerdict::accepted);
  CHECK(settled("node03", slow) == NodeVerdict::accepted);
  CHECK(link_matrix(steps("node02", false), nodes, {}).size() == 6);
  for (const auto& link : link_matrix(steps("", false), nodes, {{"node01", "node01"}}))
    CHECK_FALSE(link.mbps);

  const auto gone = judged_links(steps("node02", true));
  CHECK(settled("node02", gone) == NodeVerdict::failed);
  CHECK(get(gone, "node02", "rdma/located", "rail 1, sending")
            .reason.find("not measured with 2 of 2 partners") == 0);
  for (const char* node : {"node01", "node03"}) CHECK(settled(node, gone) == NodeVerdict::accepted);
}

TEST_CASE("links whose rates differ by half are no suspects where their limit is far below") {
  // Recorded: soft-RoCE between three emulated machines, rail 1 of hgx02 limited to 1 Mbit/s. Gb/s by the
  // measuring node and its partner: sent, received.
  const std::map<std::pair<std::string, std::string>, std::pair<double, double>> recorded = {
      {{"hgx01", "hgx02"}, {0.001027, 0.15}},      {{"hgx01", "store01"}, {0.11, 0.11}},
      {{"hgx02", "store01"}, {0.08615, 0.001046}}, {{"hgx02", "hgx01"}, {0.11, 0.001012}},
      {{"store01", "hgx01"}, {0.11, 0.11}},        {{"store01", "hgx02"}, {0.001048, 0.09042}}};
  const Json expect =
      Json::parse(R"({"send_gbps":{"degraded_below":0.004},"receive_gbps":{"degraded_below":0.004}})");
  std::vector<MeasuredStep> steps;
  for (const auto& [ends, rates] : recorded) {
    const Json one = measured(
        "rdma-link", {{"send_gbps", {rates.first, "Gb/s"}}, {"receive_gbps", {rates.second, "Gb/s"}}},
        {{"device", "rxe1"}, {"peer_device", "rxe1"}});
    steps.push_back(step(
        ends.first, "rdma", "RDMA", "", expect,
        {{"check", "rdma"}, {"parts", {{{"subject", ends.second}, {"like", "rail 1"}, {"result", one}}}}}));
  }
  const auto judged = judged_links(steps);
  const Check& located = get(judged, "hgx02", "rdma/located", "rail 1, receiving");
  CHECK(located.faulty_parts == std::vector<std::string>{"link of hgx02 (rxe1, rail 1), receiving"});
  CHECK(located.reason.find("slow with 2 of 2 partners") == 0);
  CHECK(settled("hgx02", judged) == NodeVerdict::degraded);
  for (const char* innocent : {"hgx01", "store01"}) {
    CHECK(settled(innocent, judged) == NodeVerdict::accepted);
    for (const Check& check : judged.at(innocent)) CHECK(check.name != "rdma/located");
  }
}

TEST_CASE(
    "with two nodes only, a port that is not there is held against the node that lacks it, not against the "
    "one that asked") {
  Json without = measured("rdma-link", {}, {{"at_fault", "peer"}, {"device", "mlx5_0"}, {"peer_device", ""}});
  without["outcome"] = "unavailable", without["error"] = "the partner has no RDMA device";
  const Json parts = {
      {"check", "rdma"},
      {"parts", Json::array({{{"subject", "node02"}, {"like", "rail 0"}, {"result", without}}})}};
  Json none = {{"check", "rdma"},
               {"outcome", "unavailable"},
               {"error", "this node has no RDMA device"},
               {"metrics", Json::object()},
               {"blame", Json::array()}};
  const auto fine = measured("dgemm", {{"gflops", {9, "GFLOP/s"}}});
  const auto judged = judged_links({step("node01", "dgemm", "DGEMM", "", nullptr, fine),
                                    step("node01", "rdma", "RDMA", "", nullptr, parts),
                                    step("node02", "dgemm", "DGEMM", "", nullptr, fine),
                                    step("node02", "rdma", "RDMA", "", nullptr, none)});
  CHECK(settled("node01", judged) == NodeVerdict::accepted);
  CHECK(get(judged, "node01", "rdma/data", "node02, rail 0").verdict ==
        Verdict::skipped);  // not measured stays not measured
  CHECK(settled("node02", judged) == NodeVerdict::failed);
  CHECK(get(judged, "node02", "rdma/data").reason == "this node has no RDMA device");

  // It went away in the middle: what broke off with node01 is explained by what node02 found afterwards.
  Json broken = measured("rdma-link", {}, {{"device", "mlx5_0"}, {"peer_device", "mlx5_0"}});
  broken["outcome"] = "failed", broken["error"] = "perftest exited with 1";
  const Json other = {
      {"check", "rdma"},
      {"parts", Json::array({{{"subject", "node02"}, {"like", "rail 0"}, {"result", broken}}})}};
  const auto meanwhile = judged_links({step("node01", "dgemm", "DGEMM", "", nullptr, fine),
                                       step("node01", "rdma", "RDMA", "", nullptr, other),
                                       step("node02", "dgemm", "DGEMM", "", nullptr, fine),
                                       step("node02", "rdma", "RDMA", "", nullptr, none)});
  CHECK(settled("node01", meanwhile) == NodeVerdict::accepted);
  CHECK(settled("node02", meanwhile) == NodeVerdict::failed);
  const auto open = judged_links({step("node01", "dgemm", "DGEMM", "", nullptr, fine),
                                  step("node01", "rdma", "RDMA", "", nullptr, other),
                                  step("node02", "dgemm", "DGEMM", "", nullptr, fine)});
  CHECK(settled("node01", open) == NodeVerdict::failed);  // without that it may be either
  CHECK(settled("node02", open) == NodeVerdict::failed);
}

TEST_CASE(
    "a counter that a driver does not have is neither good nor bad, and one that was to be read and was not "
    "is no pass") {
  const Json expect = Json::parse(R"({"rdma_link_downs":{"max":0},"rdma_overruns":{"max":0}})");
  const auto judged_with = [&](const char* absent) {
    return judge_measurements(
        {step("a", "rdma counters", "", "", expect,
              measured("counters", {{"rdma_link_downs", {0, "/h"}}}, {{"absent", Json::array({absent})}}))});
  };
  const auto without = judged_with("rdma_overruns");
  CHECK(get(without, "a", "rdma counters/rdma_link_downs").verdict == Verdict::pass);
  CHECK(get(without, "a", "rdma counters/rdma_overruns").verdict == Verdict::not_applicable);
  CHECK(settled("a", without) == NodeVerdict::looked_at);  // nothing against it, and no load ran
  CHECK(settled("a", judged_with("RDMA ports")) == NodeVerdict::failed);

  // The kernel's log that could not be read: a fatal Xid may be in it.
  const auto unread = judge_measurements(
      {step("a", "counters", "", "", Json::parse(R"({"memory_uncorrected":{"max":0},"gpu_xids":{"max":0}})"),
            measured("counters", {},
                     {{"absent", Json::array({"memory_uncorrected", "RDMA ports", "kernel log"})}}))});
  CHECK(get(unread, "a", "counters/memory_uncorrected").verdict == Verdict::not_applicable);
  CHECK(get(unread, "a", "counters/gpu_xids").verdict == Verdict::skipped);
  CHECK(settled("a", unread) == NodeVerdict::failed);
}

TEST_CASE(
    "a link that was not measured because others were at work there, or its partner was lost, accuses "
    "nobody") {
  const auto node = [](const std::string& name, const std::vector<std::pair<std::string, bool>>& partners) {
    Json parts = Json::array();
    for (const auto& [partner, right] : partners) {
      Json one = measured("rdma-link", {{"send_gbps", {195, "Gb/s"}}},
                          {{"device", "mlx5_0"}, {"peer_device", "mlx5_0"}});
      if (!right)
        one["outcome"] = "unavailable", one["error"] = "busy with others", one["metrics"] = Json::object(),
        one["detail"]["inconclusive"] = true;
      parts.push_back({{"subject", partner}, {"like", "rail 0"}, {"result", one}});
    }
    return step(name, "rdma", "RDMA", "", Json::parse(R"({"send_gbps":{"min":100}})"),
                {{"check", "rdma"}, {"parts", parts}});
  };
  const auto judged =
      judged_links({node("a", {{"b", false}, {"c", true}}), node("b", {{"c", true}, {"a", false}}),
                    node("c", {{"a", true}, {"b", true}})});
  for (const char* name : {"a", "b", "c"}) {
    CHECK(settled(name, judged) == NodeVerdict::accepted);
    for (const auto& check : judged.at(name)) CHECK(check.name != "rdma/located");
  }
  CHECK(get(judged, "a", "rdma/data", "b, rail 0").verdict == Verdict::skipped);  // shown as not run
  CHECK(get(judged, "a", "rdma/data", "b, rail 0").reason == "busy with others");
  // Nothing at all was measured with it: not proven, which is no acceptance, and no accusation.
  const auto alone = judged_links({node("a", {{"b", false}}), node("b", {{"a", false}})});
  for (const char* name : {"a", "b"}) CHECK(settled(name, alone) == NodeVerdict::degraded);

  // A node that died has no result of its own. It explains what was not measured with it, on two nodes too.
  MeasuredStep dead = step("b", "rdma", "RDMA", "", nullptr, nullptr);
  dead.status = "incomplete", dead.message = "not run";
  MeasuredStep asking = node("a", {{"b", false}});
  asking.result["parts"][0]["result"]["detail"].erase("inconclusive");
  const auto died = judged_links(
      {asking, dead,
       step("a", "dgemm", "DGEMM", "", nullptr, measured("dgemm", {{"gflops", {9, "GFLOP/s"}}}))});
  CHECK(settled("a", died) == NodeVerdict::accepted);
  CHECK(settled("b", died) == NodeVerdict::failed);
}

TEST_CASE(
    "a slow collective is never the leader's fault: it is that of a link found faulty, or it is not "
    "located") {
  const Json expect = Json::parse(R"({"busbw_mbps":{"min":100}})");
  const auto with_collective = [&](double slow) {
    auto steps = links({"a", "b", "c"}, [&](const auto&, const auto& to) { return to == "c" ? slow : 9.0; });
    steps.push_back(
        step("a", "all-reduce", "", "", expect, measured("allreduce", {{"busbw_mbps", {5, "MB/s"}}})));
    steps.back().members = {"a", "b", "c"};
    return judged_links(steps);
  };
  CHECK(settled("a", with_collective(3)) == NodeVerdict::accepted);
  for (const char* node : {"a", "b", "c"}) {
    CHECK(settled(node, with_collective(9)) == NodeVerdict::degraded);
    CHECK(get(with_collective(9), node, "all-reduce/located").reason.find("not located: ") == 0);
  }
}

TEST_CASE("derived values: processors, memory modules, ports, GPUs; and why there is none") {
  Json result = measured("dgemm", {{"gflops", {500, "GFLOP/s"}}});
  CHECK_FALSE(derive("cpu_peak", result, nullptr).value);
  result["detail"] = {{"physical_cores", 32}, {"flops_per_cycle", 32}, {"cpu_mhz", 2000.0},
                      {"dimms", 8},           {"channels", 8},         {"dimm_mt_s", 4800}};
  CHECK(derive("cpu_peak", result, nullptr).value == 2048.0);
  CHECK(derive("cpu_peak", result, nullptr).text == "32 cores x 32 FLOP/cycle x 2.00 GHz = 2048 GFLOP/s");
  CHECK(derive("dimm_bandwidth", result, nullptr).value == 307200.0);
  result["detail"].erase("dimm_mt_s");
  CHECK_FALSE(derive("dimm_bandwidth", result, nullptr).value);
  CHECK_FALSE(derive("rdma_payload", result, nullptr).value);
  result["detail"] = {{"rate_gbps", 400.0}, {"mtu", 4096}, {"link_layer", "InfiniBand"}};
  CHECK(derive("rdma_payload", result, nullptr).value.value_or(0) == Approx(397.48).epsilon(1e-4));
  result["detail"]["link_layer"] = "Ethernet";
  CHECK(derive("rdma_payload", result, nullptr).text ==
        "400 Gb/s x 4096/4178 (payload share of a packet) = 392.1 Gb/s");

  HardwareFacts facts;
  CHECK_FALSE(derive("nic_payload", result, &facts).value);
  NicFacts nic;
  nic.speed_mbps = 10000;
  nic.link_up = true;
  facts.nics = {nic};
  CHECK(derive("nic_payload", result, &facts).value.value_or(0) ==
        Approx(1176.9).epsilon(1e-4));  // the only one with link
  CHECK_FALSE(derive("gpu_bf16_tflops", result, &facts).value);
  GpuFacts gpu;
  gpu.model = "NVIDIA H200";
  facts.gpus = {gpu};
  CHECK(derive("gpu_copy_gbps", result, &facts).value == 4010.0);
  CHECK(derive("gpu_copy_gbps", result, &facts).source.find("ND_H200_v5") != std::string::npos);
  facts.gpus[0].model = "NVIDIA T4";
  CHECK(derive("gpu_copy_gbps", result, &facts).text ==
        "the GPU table has no public figure of gpu_copy_gbps for NVIDIA T4");
  CHECK_FALSE(
      derive("rdma_payload", measured("x", {}, {{"rate_gbps", 400.0}, {"mtu", 4096}}), nullptr).value);
}

TEST_CASE("a derived value sets the floor, and its formula stands beside the verdict") {
  const Json expect = Json::parse(R"({"gflops":{"derive":"cpu_peak","ratio":0.5,"fail_ratio":0.1}})");
  REQUIRE(check_expectations(expect).ok());
  const auto verdict = [&](double gflops, const Json& detail) {
    auto steps = fleet(expect, {gflops});
    steps[0].result["detail"] = detail;
    return get(judge_measurements(steps), "n0", "dgemm/gflops");
  };
  const Json detail = {{"physical_cores", 10}, {"flops_per_cycle", 16}, {"cpu_mhz", 2500}};  // 400
  CHECK(verdict(201, detail).verdict == Verdict::pass);
  CHECK(verdict(199, detail).verdict == Verdict::degraded);
  CHECK(verdict(39, detail).verdict == Verdict::fail);
  CHECK(verdict(199, detail).derivation.find("10 cores x 16 FLOP/cycle x 2.50 GHz = 400 GFLOP/s") !=
        std::string::npos);
  CHECK(verdict(1, Json::object()).verdict == Verdict::not_judged);
  CHECK(verdict(1, Json::object()).derivation.find("no value derived") != std::string::npos);
}

TEST_CASE("the bound of an all-reduce is that of the fact sheet") {
  // 8 ports x 48.5 GB/s, NVLS 480 inside: min(480, 388 x N/(N-1) x (8N-1)/(8N)).
  for (const auto& [nodes, bound] : std::map<int, double>{
           {1, 480}, {2, 480}, {4, 480}, {8, 436}, {16, 411}, {32, 399}, {64, 393}, {512, 389}}) {
    CAPTURE(nodes);
    CollectiveShape shape;
    shape.nodes = nodes;
    CHECK(*collective_bound(shape).value == Approx(bound).margin(1.0));
    shape.algorithm = CollectiveShape::Algorithm::ring;
    CHECK(*collective_bound(shape).value == 368.0);
    shape.algorithm = CollectiveShape::Algorithm::sharp;
    CHECK(*collective_bound(shape).value == 480.0);
  }
  CollectiveShape none;
  none.nodes = 2;
  none.nics_per_node = 0;
  CHECK_FALSE(collective_bound(none).value);
}

TEST_CASE("TCP is held to the port that has the node's address, not to the node's fastest") {
  HardwareFacts facts;
  NicFacts in, rail;
  in.name = "eno1", in.mac = "52:54:00:20:00:01", in.speed_mbps = 25000, in.link_up = true;
  rail.name = "rail0", rail.mac = "52:54:00:20:00:99", rail.speed_mbps = 400000, rail.link_up = true;
  facts.nics = {in, rail};
  const auto bound = [&](Json detail) {
    return derive("nic_payload", measured("link", {{"send_mbps", {2500, "MB/s"}}}, std::move(detail)),
                  &facts);
  };
  const double of_25 = 25000.0 / 8 * 1448 / 1538;
  const auto reported =
      bound({{"own_port", {{"interface", "eno1"}, {"mac", in.mac}, {"speed_mbps", 25000}}}});
  CHECK(*reported.value == Approx(of_25));
  CHECK(reported.text.find("eno1") != std::string::npos);
  CHECK(*bound({{"own_port", {{"interface", "bond0"}, {"mac", "02:00:00:00:00:01"}, {"speed_mbps", 50000}}},
                {"streams", 2}})
             .value == Approx(2 * of_25));
  CHECK(*bound({{"own_port", {{"interface", "eno1"}, {"mac", in.mac}}}}).value ==
        Approx(of_25));  // by the inventory
  // What is not known is not guessed.
  CHECK_FALSE(bound({{"own_port", {{"interface", "eno7"}, {"mac", "52:54:00:20:00:77"}}}}).value);
  CHECK_FALSE(bound(Json::object()).value);
  facts.nics = {in};
  CHECK(*bound(Json::object()).value == Approx(of_25));  // it has no other
}

TEST_CASE("NCCL over nodes is held to the bound of its GPUs and of the ports it went over") {
  HardwareFacts facts;
  facts.gpus.resize(8);
  for (auto& gpu : facts.gpus) gpu.model = "NVIDIA H200";
  NicFacts port;
  port.link_up = true;
  port.speed_mbps = 800000;
  facts.nics.assign(2, port);  // storage's: no rail for being fast
  std::vector<double> rails(8, 400.0);
  const auto bound = [&](double nodes, double gpus, const char* algorithm) {
    return derive("nccl_bus",
                  measured("nccl", {{"ranks", {nodes, "ranks"}}, {"gpus", {gpus, "ranks"}}},
                           {{"algorithm", algorithm}, {"rails", rails}}),
                  &facts);
  };
  CHECK(*bound(16, 128, "NCCL's choice").value == Approx(411).margin(1));
  CHECK(*bound(2, 16, "Ring").value == Approx(367.6));
  rails.resize(10, 400.0);  // storage's among them: no more rails than GPUs
  CHECK(*bound(16, 128, "NCCL's choice").value == Approx(411).margin(1));
  rails.resize(4);
  CHECK(*bound(2, 16, "Ring").value == Approx(4 * 48.5));
  CHECK(bound(2, 16, "Ring").text.find("4 ports x 48.5") != std::string::npos);
  // What is not known is said, and judges nothing.
  CHECK_FALSE(bound(0, 0, "Ring").value);
  rails.push_back(200);
  CHECK(bound(2, 16, "Ring").text.find("it is unknown which ones connect the GPUs") != std::string::npos);
  CHECK_FALSE(bound(2, 16, "Ring").value);
  rails.clear();
  CHECK_FALSE(bound(2, 16, "Ring").value);
  CHECK(*bound(1, 8, "NCCL's choice").value == Approx(480));  // no network in it
  CHECK_FALSE(
      derive("nccl_bus", measured("nccl", {{"ranks", {2, "ranks"}}, {"gpus", {16, "ranks"}}}), &facts).value);
  facts.gpus[0].model = "Unheard Of";
  CHECK(bound(2, 16, "Ring").text.find("Unheard Of") != std::string::npos);
  CHECK_FALSE(derive("nccl_bus", nullptr, &facts).value);
  facts.gpus.clear();
  CHECK_FALSE(bound(2, 16, "Ring").value);
}
