// A run in which no load ran: nothing is accepted by it, and every form of its report says so.
#include "controller/report/history.h"
#include "controller/report/verdict.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

MeasuredStep counters(const std::string& node, double errors = 0) {
  return step(node, "counters", "counters", "", {{"link_down", {{"degraded_above", 0}}}},
              measured("counters", {{"link_down", {errors, ""}}}));
}
MeasuredStep pcie(const std::string& node) {
  return step(node, "pcie", "pcie", "", {{"lanes_lost", {{"max", 0}}}},
              measured("pcie", {{"lanes_lost", {0, "lanes"}}}));
}
MeasuredStep dgemm(const std::string& node) {
  return step(node, "dgemm", "dgemm", "", {{"gflops", {{"min", 1}}}},
              measured("dgemm", {{"gflops", {5, ""}}}));
}
MeasuredStep unavailable(MeasuredStep given) {
  given.mandatory = false;
  given.result["outcome"] = "unavailable";
  return given;
}

Report report_of(const std::vector<MeasuredStep>& steps, const std::string& profile = "") {
  Report out;
  out.cluster = "gaggle";
  out.kind = "accept";
  out.profile = profile;
  for (auto& [node, checks] : judge_measurements(steps)) {
    NodeReport one;
    one.name = node;
    one.verdict = NodeVerdict::accepted;
    one.checks = checks;
    Check inventory;
    inventory.name = "hardware/cpus";
    inventory.verdict = Verdict::pass;
    one.checks.push_back(inventory);
    out.nodes.push_back(std::move(one));
  }
  settle(out);
  return out;
}

}  // namespace

TEST_CASE("report: a run without a load is a look, and accepts nothing", "[look]") {
  const Report report = report_of({counters("n1"), pcie("n1"), counters("n2"), pcie("n2")});
  CHECK(report.kind == kLook);
  CHECK(title(report) == "gaggle: 2 of 2 nodes looked at, not measured");
  for (const auto& node : report.nodes) {
    CHECK(node.verdict == NodeVerdict::looked_at);
    CHECK(node.reason.find("no load") != std::string::npos);
  }
  CHECK(totals(report).accepted == 0);
  CHECK(totals(report).looked_at == 2);

  const auto read = report_from_json(parse_json(to_json_text(report)).value());
  REQUIRE(read.ok());
  CHECK(read->kind == kLook);
  CHECK(title(*read) == title(report));
  CHECK(render_html(report).find("2 of 2</b><span>nodes looked at, not measured") != std::string::npos);
  CHECK(render_html(report).find("nodes accepted") == std::string::npos);
  CHECK(render_html(report).find("badge b-looked_at") != std::string::npos);
  CHECK(render_text(report).find("2 looked at, not measured") != std::string::npos);
  CHECK(render_junit(report).find("errors=\"2\"") != std::string::npos);
  CHECK(render_junit(report).find("<error message=\"looked at, not measured") != std::string::npos);
  const std::string flat = render_flat(report);
  CHECK(parse_json(flat.substr(0, flat.find('\n')))->at("verdict") == "looked_at");
}

TEST_CASE("report: what a look finds counts, and it stays a look", "[look]") {
  const Report report = report_of({counters("n1", 2), pcie("n1"), counters("n2")});
  CHECK(report.kind == kLook);
  CHECK(report.nodes[0].verdict == NodeVerdict::degraded);
  CHECK(report.nodes[1].verdict == NodeVerdict::looked_at);
  CHECK(title(report) == "gaggle: 1 of 2 nodes looked at, not measured, 1 degraded");
}

TEST_CASE("report: a load on one node makes the run an acceptance, and accepts that node only", "[look]") {
  const Report report = report_of({counters("n1"), dgemm("n1"), counters("n2")});
  CHECK(report.kind == "accept");
  CHECK(report.nodes[0].verdict == NodeVerdict::accepted);
  CHECK(report.nodes[1].verdict == NodeVerdict::looked_at);
  CHECK(title(report) == "gaggle: 1 of 2 nodes accepted, 1 looked at, not measured");
  CHECK(render_text(report).find("1 of 2 nodes accepted") != std::string::npos);
}

TEST_CASE("report: a load that could not run, or that an earlier run had, is none", "[look]") {
  CHECK(report_of({counters("n1"), unavailable(dgemm("n1"))}).kind == kLook);
  Report carried = report_of({counters("n1")});
  Check link;
  link.name = "links/located";
  link.verdict = Verdict::degraded;
  link.evidence = {{"carried_from_run", 3}};
  REQUIRE(is_carried_over(link));
  carried.kind = "accept";
  carried.nodes[0].verdict = NodeVerdict::accepted;
  carried.nodes[0].checks.push_back(link);
  settle(carried);
  CHECK(carried.kind == kLook);
  CHECK(carried.nodes[0].verdict == NodeVerdict::degraded);
}

TEST_CASE("report: without a profile nothing is tested; with one, an inventory alone accepts nothing",
          "[look]") {
  for (const char* profile : {"", "standard"}) {
    Report report = report_of({dgemm("n1")}, profile);
    report.nodes[0].checks.erase(report.nodes[0].checks.begin(), report.nodes[0].checks.end() - 1);
    settle(report);
    CHECK((report.nodes[0].verdict == NodeVerdict::accepted) == (*profile == '\0'));
    CHECK((report.kind == kLook) == (*profile != '\0'));
  }
}

TEST_CASE("judge: a rate of the cache is neither judged nor compared nor kept, except in a lab", "[look]") {
  const Json expect = {{"triad_mbps", {{"min", 8000}, {"fleet_min_ratio", 0.9}}}};
  const auto memory = [&](const std::string& node, double mbps, bool resident) {
    return step(node, "memory", "memory", "", expect,
                measured("stream", {{"triad_mbps", {mbps, "MB/s"}}},
                         {{"cache_resident", resident}, {"array_bytes", 8 << 20}}));
  };
  std::vector<MeasuredStep> steps = {memory("a", 900'000, true),  memory("b", 900'000, true),
                                     memory("f", 900'000, true),  memory("g", 900'000, true),
                                     memory("c", 200'000, false), memory("d", 201'000, false),
                                     memory("e", 199'000, false)};
  auto judged = judge_measurements(steps);
  for (const char* node : {"c", "d", "e"}) CHECK(judged[node].at(1).verdict == Verdict::pass);
  for (const char* node : {"a", "b"}) {
    CHECK(judged[node].at(0).verdict == Verdict::pass);  // the data was right
    CHECK(judged[node].at(1).verdict == Verdict::skipped);
    CHECK_FALSE(judged[node].at(1).measured.has_value());
    CHECK(judged[node].at(1).reason.find("8 MiB") != std::string::npos);
  }
  steps[0].lab = true;
  CHECK(judge_measurements({steps[0]})["a"].at(1).verdict == Verdict::pass);
}

TEST_CASE("judge: a part of the inventory that the measurement did not see failed", "[look]") {
  HardwareFacts facts;
  const auto add = [&](const std::string& name, const std::string& serial, const std::string& transport,
                       const std::string& model) {
    DiskFacts& disk = facts.disks.emplace_back();
    disk.name = name;
    disk.serial = serial;
    disk.model = model;
    disk.transport = transport;
    disk.pcie_address = transport == "nvme" ? "0000:4" + serial.substr(1) + ":00.0" : "";
    disk.bus_speed = transport == "nvme" ? "16.0 GT/s x4" : "";
  };
  add("nvme0n1", "S0", "nvme", "X");
  add("nvme1n1", "S1", "nvme", "X");
  add("nvme2n1", "S2", "nvme", "zoned, and alone");
  add("sda", "W0", "sata", "Y");
  add("sdb", "W1", "sata", "Y");
  add("sdc", "U0", "usb", "Y");
  add("sdd", "", "sata", "Y");
  for (const char* pci : {"0000:17:00.0", "0000:2a:00.0"}) {
    GpuFacts& gpu = facts.gpus.emplace_back();
    gpu.pci = pci;
    gpu.model = "H";
    gpu.bus_speed = "32.0 GT/s x16";
  }
  Comparison with;
  with.facts["n1"] = &facts;
  Json detail = {{"without_link", Json::array()}};
  const auto failed = [&](const std::string& check, const std::vector<std::string>& seen) {
    MeasuredStep step = report_sample::step("n1", check, check, "", nullptr, nullptr);
    step.result = {{"check", check}, {"parts", Json::array()}, {"detail", detail}};
    for (const auto& subject : seen)
      step.result["parts"].push_back(
          {{"subject", subject}, {"like", "X 1"}, {"result", measured(check, {})}});
    std::vector<std::string> out;
    const auto judged = judge_measurements({step}, with);
    for (const auto& one : judged.at("n1"))
      if (one.verdict == Verdict::fail) out.push_back(one.name + " " + one.subject);
    return out;
  };
  using Names = std::vector<std::string>;
  CHECK(failed("drives", {"S0", "sda"}) == Names{"drives/data S1", "drives/data W1"});
  CHECK(failed("drives", {"S0", "S1", "W0", "sdb"}).empty());
  CHECK(failed("drives", {}).empty());  // none of a kind is seen: the measurement may leave it out
  CHECK(failed("pcie", {"0000:17:00.0", "0000:40:00.0"}) ==
        Names{"pcie/data 0000:2a:00.0", "pcie/data 0000:41:00.0"});
  CHECK(failed("pcie", {"0000:17:00.0", "0000:2a:00.0"}).empty());
  detail["without_link"].push_back("0000:41:00.0");  // it is there, on the root complex
  CHECK(failed("pcie", {"0000:17:00.0", "0000:40:00.0"}) == Names{"pcie/data 0000:2a:00.0"});
  detail = Json::object();  // a kernel that does not say which are
  CHECK(failed("pcie", {"0000:17:00.0", "0000:40:00.0"}).empty());
  CHECK(failed("memory", {"S0"}).empty());
}

TEST_CASE("report: the title names on how many nodes RDMA was not measured", "[report]") {
  Report report = report_of({dgemm("n1"), dgemm("n2")});
  Check rdma;
  rdma.name = "rdma/data";
  rdma.verdict = Verdict::fail;
  rdma.evidence = {{"outcome", "unavailable"}};
  report.nodes[1].checks.push_back(rdma);
  CHECK(totals(report).without_rdma == 1);
  CHECK(title(report).find("RDMA not measured on 1 node") != std::string::npos);
  report.nodes[1].checks.back().evidence["outcome"] =
      "failed";  // measured, and bad: no fault of a missing part
  CHECK(totals(report).without_rdma == 0);
}
