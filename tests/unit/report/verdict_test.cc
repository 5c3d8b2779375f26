#include "controller/report/verdict.h"

#include "base/standin.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

const Check* find(const std::vector<Check>& checks, const std::string& name,
                  const std::string& subject = "") {
  for (const auto& check : checks)
    if (check.name == name && (subject.empty() || check.subject == subject)) return &check;
  return nullptr;
}
Verdict verdict(const std::vector<Check>& checks, const std::string& name) {
  const Check* check = find(checks, name);
  REQUIRE(check != nullptr);
  return check->verdict;
}

GpuFacts gpu(const std::string& model, const std::string& pci, const std::string& speed = "32.0 GT/s x16") {
  GpuFacts out;
  out.model = model;
  out.pci = pci;
  out.bus_speed = speed;
  return out;
}

NodeReport accepted_with(std::vector<Check> checks) {
  NodeReport out;
  out.verdict = NodeVerdict::accepted;
  out.checks = std::move(checks);
  return out;
}

std::vector<Check> judge_one(MeasuredStep s) {
  s.node = "n1";
  return judge_measurements({s}).at("n1");
}

}  // namespace

TEST_CASE("GPU declared and absent is a failure; no GPU declared is not applicable") {
  NodeSpec node;
  HardwareFacts facts;

  const auto none = judge_hardware(node, &facts);
  CHECK(verdict(none, "hardware/gpus") == Verdict::not_applicable);
  CHECK(find(none, "hardware/gpus")->derivation == "not declared in the spec");

  node.hardware.gpus = 8;
  const auto absent = judge_hardware(node, &facts);
  CHECK(verdict(absent, "hardware/gpus") == Verdict::fail);
  CHECK(find(absent, "hardware/gpus")->reason == "0 GPUs found, 8 GPUs declared");
  CHECK(obstacle(accepted_with(absent)).find("hardware/gpus failed") != std::string::npos);

  node.hardware.gpus.reset();
  node.hardware.gpu_model = "H100*";
  const auto by_model = judge_hardware(node, &facts);
  CHECK(verdict(by_model, "hardware/gpus") == Verdict::fail);
  CHECK(verdict(by_model, "hardware/gpu_model") == Verdict::fail);

  node.hardware.gpu_model.clear();
  node.hardware.gpus = 0;
  CHECK(verdict(judge_hardware(node, &facts), "hardware/gpus") == Verdict::not_applicable);
  facts.gpus = {gpu("H100", "0000:17:00.0")};
  CHECK(verdict(judge_hardware(node, &facts), "hardware/gpus") == Verdict::fail);
}

TEST_CASE("GPUs that a lab stands in for are counted, and their checks say SIMULATED GPU", "[standin]") {
  NodeSpec node;
  node.hardware.gpus = 2;
  node.hardware.gpu_model = "*H100*";
  HardwareFacts facts;
  facts.gpus = standin_facts({2}, "abcd");
  const auto checks = judge_hardware(node, &facts);
  for (const char* name : {"hardware/gpus", "hardware/gpu_model"}) {
    CHECK(verdict(checks, name) == Verdict::pass);
    CHECK(find(checks, name)->measured_text.find(kSimulatedGpu) != std::string::npos);
  }
  node.hardware.gpus = 8;
  const auto few = judge_hardware(node, &facts);
  CHECK(verdict(few, "hardware/gpus") == Verdict::fail);
  CHECK(find(few, "hardware/gpus")->measured_text.find(kSimulatedGpu) != std::string::npos);
}

TEST_CASE("GPU count, model and PCIe link are those declared, and the odd one is named") {
  NodeSpec node;
  node.hardware.gpus = 2;
  node.hardware.gpu_model = "NVIDIA H100*";
  node.hardware.pcie = "5.0 x16";
  HardwareFacts facts;
  facts.gpus = {gpu("NVIDIA H100 80GB HBM3", "0000:17:00.0"), gpu("NVIDIA H100 80GB HBM3", "0000:65:00.0")};
  for (const auto& check : judge_hardware(node, &facts))
    if (check.name.find("gpu") != std::string::npos || check.name == "hardware/pcie")
      CHECK(check.verdict == Verdict::pass);

  facts.gpus[1] = gpu("NVIDIA A100-SXM4-80GB", "0000:65:00.0", "16.0 GT/s x16");
  auto checks = judge_hardware(node, &facts);
  CHECK(verdict(checks, "hardware/gpus") == Verdict::pass);
  CHECK(verdict(checks, "hardware/gpu_model") == Verdict::fail);
  CHECK(find(checks, "hardware/gpu_model")->faulty_parts ==
        std::vector<std::string>{"0000:65:00.0 is NVIDIA A100-SXM4-80GB"});
  CHECK(verdict(checks, "hardware/pcie") == Verdict::fail);
  CHECK(find(checks, "hardware/pcie")->faulty_parts ==
        std::vector<std::string>{"0000:65:00.0 at 16.0 GT/s x16"});

  facts.gpus[1] = gpu("NVIDIA H100 80GB HBM3", "0000:65:00.0", "");
  CHECK(verdict(judge_hardware(node, &facts), "hardware/pcie") == Verdict::skipped);
  node.hardware.pcie = "fast";
  facts.gpus[1].bus_speed = "32.0 GT/s x16";
  CHECK(verdict(judge_hardware(node, &facts), "hardware/pcie") != Verdict::pass);
  facts.gpus.clear();
  CHECK(verdict(judge_hardware(node, &facts), "hardware/pcie") == Verdict::fail);
}

TEST_CASE("the lab node's hardware is as declared") {
  const HardwareFacts facts = report_sample::facts("node01");
  for (const auto& check : judge_hardware(report_sample::node_spec("node01"), &facts)) {
    CAPTURE(check.name, check.reason);
    CHECK((check.verdict == Verdict::pass || check.verdict == Verdict::not_applicable));
    CHECK_FALSE(check.derivation.empty());
  }
}

TEST_CASE("memory is what is declared less what firmware and kernel keep, not less one module") {
  struct Row {
    int64_t declared;
    uint64_t found;
    Verdict verdict;
  };
  const uint64_t gib = uint64_t{1} << 30;
  const std::vector<Row> rows = {
      {int64_t(gib), gib, Verdict::pass},
      {int64_t(gib), 960ull << 20, Verdict::pass},  // what a 1 GiB guest's kernel manages
      {int64_t(gib), 512ull << 20, Verdict::fail},
      {int64_t(2048 * gib), 2015 * gib + gib / 2, Verdict::fail},  // one of 32 modules of 64 GiB is missing
      {int64_t(2048 * gib), 1984 * gib, Verdict::fail},
      {int64_t(2048 * gib), 2020 * gib, Verdict::pass},
      {int64_t(2048 * gib), 4096 * gib, Verdict::pass},
      {0, gib, Verdict::not_applicable},
  };
  for (const auto& row : rows) {
    CAPTURE(row.declared, row.found);
    NodeSpec node;
    node.hardware.memory_bytes_min = row.declared;
    HardwareFacts facts;
    facts.memory_bytes = row.found;
    CHECK(verdict(judge_hardware(node, &facts), "hardware/memory") == row.verdict);
  }
}

TEST_CASE("processors, ports and disks are counted") {
  NodeSpec node = report_sample::node_spec("node01");
  HardwareFacts facts = report_sample::facts("node01");
  SECTION("a processor is missing") {
    node.hardware.cpus = 2;
    CHECK(verdict(judge_hardware(node, &facts), "hardware/cpus") == Verdict::fail);
  }
  SECTION("another processor") {
    node.hardware.cpu_model = "AMD EPYC*";
    CHECK(verdict(judge_hardware(node, &facts), "hardware/cpu_model") == Verdict::fail);
    facts.cpus.model = "AMD EPYC 9654";
    CHECK(verdict(judge_hardware(node, &facts), "hardware/cpu_model") == Verdict::pass);
    facts.cpus.model = "";
    CHECK(verdict(judge_hardware(node, &facts), "hardware/cpu_model") == Verdict::fail);
  }
  SECTION("a cable is out") {
    facts.nics[0].link_up = false;
    const auto checks = judge_hardware(node, &facts);
    CHECK(verdict(checks, "hardware/nics") == Verdict::fail);
    CHECK(find(checks, "hardware/nics")->faulty_parts.size() == 1);
  }
  SECTION("a drive is missing") {
    facts.disks.erase(facts.disks.begin() + 1);
    const auto checks = judge_hardware(node, &facts);
    CHECK(verdict(checks, "hardware/disks/fast") == Verdict::fail);
    CHECK(find(checks, "hardware/disks/fast")->reason == "1 disk found, 2 disks declared");
    CHECK(verdict(checks, "hardware/disks/bulk") == Verdict::pass);
  }
  SECTION("one drive more than declared is no match either") {
    facts.disks.push_back(facts.disks[3]);
    CHECK(verdict(judge_hardware(node, &facts), "hardware/disks/os") == Verdict::fail);
  }
  SECTION("size, serial and transport select too") {
    node.disks["os"].match.size_bytes = 8000000000;  // 7 % off
    CHECK(verdict(judge_hardware(node, &facts), "hardware/disks/os") == Verdict::fail);
    node.disks["os"].match.size_bytes = 8500000000;
    CHECK(verdict(judge_hardware(node, &facts), "hardware/disks/os") == Verdict::pass);
    node.disks["os"].match.serials = {"other"};
    CHECK(verdict(judge_hardware(node, &facts), "hardware/disks/os") == Verdict::fail);
    node.disks["bulk"].match.transport = "sata";
    CHECK(verdict(judge_hardware(node, &facts), "hardware/disks/bulk") == Verdict::fail);
  }
}

TEST_CASE("hardware that was never seen is not accepted") {
  const auto checks = judge_hardware(report_sample::node_spec("node01"), nullptr);
  CHECK(verdict(checks, "hardware/facts") == Verdict::skipped);
  CHECK_FALSE(obstacle(accepted_with(checks)).empty());
}

TEST_CASE("measured against floors and ceilings, with the derivation printed") {
  const Json expect = Json::parse(R"({"gflops":{"min":10,"unit":"GFLOP/s"}})");
  auto checks =
      judge_one(step("", "dgemm", "DGEMM", "", expect, measured("dgemm", {{"gflops", {10, "GFLOP/s"}}})));
  REQUIRE(checks.size() == 2);
  CHECK(checks[0].name == "dgemm/data");
  CHECK(checks[0].evidence["check"] == "dgemm");
  CHECK(checks[1].verdict == Verdict::pass);
  CHECK(checks[1].derivation == "the profile's `min`, 10 GFLOP/s");
  CHECK(checks[1].expected_text == "at least 10 GFLOP/s");

  checks =
      judge_one(step("", "dgemm", "DGEMM", "", expect, measured("dgemm", {{"gflops", {9.99, "GFLOP/s"}}})));
  CHECK(checks[1].verdict == Verdict::fail);
  CHECK(checks[1].reason == "9.99 GFLOP/s is below 10 GFLOP/s");
  CHECK(checks[0].verdict == Verdict::pass);

  const Json ceiling = Json::parse(R"({"rtt_ms":{"max":1,"unit":"ms"}})");
  CHECK(
      judge_one(step("", "link", "", "", ceiling, measured("link", {{"rtt_ms", {0.5, "ms"}}})))[1].verdict ==
      Verdict::pass);
  checks = judge_one(step("", "link", "", "", ceiling, measured("link", {{"rtt_ms", {1.5, "ms"}}})));
  CHECK(checks[1].verdict == Verdict::fail);
  CHECK(checks[1].lower_is_better);
}

TEST_CASE("what did not run is skipped, what ran wrong fails, and neither passes") {
  const Json expect = Json::parse(R"({"gflops":{"min":1}})");
  const auto with_outcome = [&](const char* outcome) {
    MeasuredStep s = step("", "dgemm", "", "", expect, measured("dgemm", {{"gflops", {50, "GFLOP/s"}}}));
    s.result["outcome"] = outcome;
    s.result["error"] = "cpu 3 product 7 is wrong";
    s.result["blame"] = {"cpu 3"};
    return s;
  };
  struct Row {
    MeasuredStep step;
    Verdict data, metric;
  };
  MeasuredStep failed = step("", "dgemm", "", "", expect, nullptr);
  failed.status = "failed";
  MeasuredStep missing = step("", "dgemm", "", "", expect, nullptr);
  missing.status = "incomplete";
  MeasuredStep other = step("", "dgemm", "", "", expect, measured("dgemm", {{"mflops", {50, ""}}}));
  MeasuredStep nan = step("", "dgemm", "", "", expect,
                          Json::parse(R"({"outcome":"measured","metrics":{"gflops":{"value":null}}})"));
  MeasuredStep odd = step("", "dgemm", "", "", expect, Json::parse(R"(["measured"])"));
  const std::vector<Row> rows = {
      {with_outcome("measured"), Verdict::pass, Verdict::pass},
      {with_outcome("corrupt"), Verdict::fail, Verdict::skipped},  // fast and wrong is wrong
      {with_outcome("failed"), Verdict::fail, Verdict::skipped},
      {with_outcome("refused"), Verdict::fail, Verdict::skipped},
      {with_outcome("unavailable"), Verdict::skipped, Verdict::skipped},
      {with_outcome("splendid"), Verdict::skipped, Verdict::skipped},
      {failed, Verdict::fail, Verdict::skipped},
      {missing, Verdict::skipped, Verdict::skipped},
      {other, Verdict::pass, Verdict::skipped},
      {nan, Verdict::pass, Verdict::skipped},
      {odd, Verdict::skipped, Verdict::skipped},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto checks = judge_one(rows[i].step);
    REQUIRE(checks.size() == 2);
    CHECK(checks[0].verdict == rows[i].data);
    CHECK(checks[1].verdict == rows[i].metric);
    CHECK(obstacle(accepted_with(checks)).empty() == (i == 0));
  }
  CHECK(judge_one(with_outcome("corrupt"))[0].faulty_parts == std::vector<std::string>{"cpu 3"});
  CHECK(judge_one(with_outcome("corrupt"))[0].reason == "cpu 3 product 7 is wrong");
}

TEST_CASE("an optional check degrades, and one that does not apply says why") {
  MeasuredStep s = step("", "fio", "", "/scratch", Json::parse(R"({"read_mbps":{"min":100}})"),
                        measured("fio", {{"read_mbps", {3, "MB/s"}}}));
  s.mandatory = false;
  const auto checks = judge_one(s);
  CHECK(checks[1].verdict == Verdict::degraded);
  CHECK(obstacle(accepted_with(checks)).empty());
  s.status = "not_applicable";
  s.message = "no shared storage declared";
  s.mandatory = true;
  const auto none = judge_one(s);
  REQUIRE(none.size() == 1);
  CHECK(none[0].verdict == Verdict::not_applicable);
  CHECK(none[0].derivation == "no shared storage declared");
}

TEST_CASE("of a step whose speed is not judged yet, faults stop the node all the same") {
  const auto judged = [](const Json& result, std::vector<std::string> blocks) {
    MeasuredStep s =
        step("", "gpu memory", "", "", Json::parse(R"({"copy_gbps":{"min":100},"ecc":{"max":0}})"), result);
    s.mandatory = false;
    s.blocks = std::move(blocks);
    return judge_one(s);
  };
  const auto stopped = [](std::vector<Check> checks) {
    checks.emplace_back().verdict = Verdict::pass;  // something else did run
    return !obstacle(accepted_with(checks)).empty();
  };
  const Json slow = measured("gpu-memory", {{"copy_gbps", {3, "GB/s"}}, {"ecc", {0, ""}}});
  const Json faulty = measured("gpu-memory", {{"copy_gbps", {3000, "GB/s"}}, {"ecc", {1, ""}}});
  Json wrong = slow, absent = slow;
  wrong["outcome"] = "corrupt";
  absent["outcome"] = "unavailable";
  const std::vector<std::string> all = {"run", "data", "ceilings"};
  for (const auto& result : {slow, faulty, wrong, absent}) CHECK_FALSE(stopped(judged(result, {})));
  CHECK_FALSE(stopped(judged(slow, all)));
  CHECK(stopped(judged(faulty, {"ceilings"})));
  CHECK_FALSE(stopped(judged(faulty, {"run", "data"})));
  CHECK(stopped(judged(wrong, {"data"})));
  CHECK_FALSE(stopped(judged(wrong, {"run", "ceilings"})));
  CHECK(stopped(judged(absent, {"run"})));
  CHECK_FALSE(stopped(judged(absent, {"data", "ceilings"})));
}

TEST_CASE("an error counter that was not read stops a node, one that the machine has not does not") {
  const auto judged = [](const Json& detail, std::vector<std::string> blocks = {"run", "data", "ceilings"}) {
    MeasuredStep s = step("", "gpu memory", "", "",
                          Json::parse(R"({"copy_gbps":{"min":100},"ecc_uncorrected":{"max":0}})"),
                          measured("gpu-memory", {{"copy_gbps", {3000, "GB/s"}}}, detail));
    s.mandatory = false;
    s.blocks = std::move(blocks);
    return judge_one(s);
  };
  const Json silent = {{"counters", "not read: nvidia-smi does not list this GPU"}};
  const auto unread = judged(silent);
  CHECK(verdict(unread, "gpu memory/ecc_uncorrected") == Verdict::skipped);
  CHECK(find(unread, "gpu memory/ecc_uncorrected")->reason == silent["counters"]);
  CHECK_FALSE(obstacle(accepted_with(unread)).empty());
  const auto gap = judged({{"absent", {"ecc_uncorrected: GPU 3 no longer reports this counter"}}});
  CHECK(find(gap, "gpu memory/ecc_uncorrected")->reason ==
        "not measured: GPU 3 no longer reports this counter");
  CHECK_FALSE(obstacle(accepted_with(gap)).empty());
  // Of no consequence where the profile does not say that counters stop a node.
  CHECK(obstacle(accepted_with(judged(silent, {"data"}))).empty());
  const auto without = judged({{"absent", {"ecc_uncorrected"}}});
  CHECK(verdict(without, "gpu memory/ecc_uncorrected") == Verdict::not_applicable);
  CHECK(obstacle(accepted_with(without)).empty());
}

TEST_CASE("the fleet rule finds the slow node, and only from three values on") {
  const Json expect = Json::parse(R"({"gflops":{"min":1,"fleet_min_ratio":0.8,"unit":"GFLOP/s"}})");
  const auto fleet = [&](std::vector<double> values) {
    std::vector<MeasuredStep> steps;
    for (size_t i = 0; i < values.size(); ++i)
      steps.push_back(step("n" + std::to_string(i), "dgemm", "", "", expect,
                           measured("dgemm", {{"gflops", {values[i], "GFLOP/s"}}})));
    return judge_measurements(steps);
  };
  auto judged = fleet({100, 98, 70, 101});
  CHECK(verdict(judged["n0"], "dgemm/gflops") == Verdict::pass);
  CHECK(verdict(judged["n2"], "dgemm/gflops") == Verdict::degraded);  // it works, it is slow
  CHECK(find(judged["n2"], "dgemm/gflops")->derivation ==
        "the profile's `min`, 1 GFLOP/s; 0.8 x fleet median 99 GFLOP/s of 4 values = 79.2 GFLOP/s");
  judged = fleet({100, 10});
  CHECK(verdict(judged["n1"], "dgemm/gflops") == Verdict::pass);
  CHECK(find(judged["n1"], "dgemm/gflops")->derivation ==
        "the profile's `min`, 1 GFLOP/s; fleet rule not applied: 2 values, but at least 3 are needed");
  // All slow together: the absolute floor still holds.
  judged = fleet({0.5, 0.5, 0.5});
  for (const char* node : {"n0", "n1", "n2"}) CHECK(verdict(judged[node], "dgemm/gflops") == Verdict::fail);
}

TEST_CASE("wrong results do not move the fleet median") {
  const Json expect = Json::parse(R"({"gflops":{"fleet_min_ratio":0.9}})");
  std::vector<MeasuredStep> steps;
  for (int i = 0; i < 4; ++i)
    steps.push_back(step("n" + std::to_string(i), "dgemm", "", "", expect,
                         measured("dgemm", {{"gflops", {i == 3 ? 9000.0 : 100, ""}}})));
  steps[3].result["outcome"] = "corrupt";
  CHECK(find(judge_measurements(steps)["n0"], "dgemm/gflops")->expected == 90.0);
}

TEST_CASE("the link matrix has every direction of every pair") {
  const std::map<std::string, std::string> addresses = {
      {"10.0.0.1", "a"}, {"10.0.0.2", "b"}, {"10.0.0.3", "c"}};
  const auto link = [&](const std::string& node, const std::string& to, double send, double receive) {
    return step(
        node, "link", "", to, Json::parse(R"({"send_mbps":{"min":50}})"),
        measured(
            "link",
            {{"send_mbps", {send, "MB/s"}}, {"receive_mbps", {receive, "MB/s"}}, {"rtt_ms", {0.2, "ms"}}},
            {{"to", to}}));
  };
  const auto links = link_matrix(
      {link("a", "10.0.0.2", 100, 90), link("b", "10.0.0.1", 80, 120), link("a", "10.0.0.3", 20, 70)},
      {"a", "b", "c"}, addresses);
  REQUIRE(links.size() == 6);
  const auto get = [&](const std::string& from, const std::string& to) {
    for (const auto& l : links)
      if (l.from == from && l.to == to) return l;
    return LinkRecord{};
  };
  CHECK(get("a", "b").mbps == 120.0);  // 100 sent by a, 120 received from a: what was reached
  CHECK(get("b", "a").mbps == 90.0);
  CHECK(get("a", "b").verdict == Verdict::pass);
  CHECK(get("a", "c").verdict == Verdict::fail);
  CHECK(get("c", "a").mbps == 70.0);
  CHECK_FALSE(get("b", "c").mbps.has_value());
  CHECK(get("b", "c").verdict == Verdict::skipped);
}

TEST_CASE("a step that measured several things is judged part by part") {
  const Json expect = Json::parse(R"({"send_mbps":{"min":50}})");
  const auto part = [](const char* subject, const char* to, double rate) {
    return Json{{"subject", subject},
                {"result", measured("link", {{"send_mbps", {rate, "MB/s"}}}, {{"to", to}})}};
  };
  MeasuredStep s = step("a", "links", "", "", expect,
                        {{"parts", {part("b", "10.0.0.2", 100), part("c", "10.0.0.3", 20)}}});
  const auto checks = judge_measurements({s}).at("a");
  REQUIRE(checks.size() == 4);
  CHECK(find(checks, "links/send_mbps", "b")->verdict == Verdict::pass);
  CHECK(find(checks, "links/send_mbps", "c")->verdict == Verdict::fail);
  const auto links = link_matrix({s}, {"a", "b", "c"}, {{"10.0.0.2", "b"}, {"10.0.0.3", "c"}});
  CHECK(links.at(0).to == "b");
  CHECK(links.at(0).mbps == 100.0);
  CHECK(links.at(1).verdict == Verdict::fail);

  s.result = {{"parts", Json::array()}};
  const auto none = judge_measurements({s}).at("a");
  REQUIRE(none.size() == 1);
  CHECK(none[0].verdict == Verdict::not_applicable);
}

TEST_CASE("expectations of a profile are checked before anything runs") {
  CHECK(check_expectations(nullptr).ok());
  CHECK(check_expectations(
            Json::parse(R"({"gflops":{"min":1,"max":2,"fleet_min_ratio":0.5,"unit":"GFLOP/s"}})"))
            .ok());
  for (const char* bad : {R"([])", R"({"gflops":1})", R"({"gflops":{"mim":1}})", R"({"gflops":{"min":"1"}})",
                          R"({"gflops":{"min":3,"max":2}})", R"({"gflops":{"fleet_min_ratio":1.5}})",
                          R"({"gflops":{"fleet_min_ratio":0}})"}) {
    CAPTURE(bad);
    CHECK_FALSE(check_expectations(Json::parse(bad)).ok());
  }
}
