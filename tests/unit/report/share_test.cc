// Nodes of which a share was measured: compared with equal shares only, not held to what is for whole ones.
#include "controller/report/measured.h"

#include "controller/report/history.h"
#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

const Json kExpect = Json::parse(
    R"({"gflops":{"min":1000,"derive":"cpu_peak","ratio":0.4,"fleet_min_ratio":0.9,"history_min_ratio":0.9},
        "slowest_core_ratio":{"degraded_below":0.7}})");

HardwareFacts share(const std::string& by) {
  HardwareFacts out;
  out.share = {32, 128, by, {"32 of 128 cores (" + by + ")"}};
  return out;
}

struct Cluster {
  HardwareFacts whole, by_cpuset = share("cpuset"), by_quota = share("cpu.max");
  std::vector<MeasuredStep> steps;
  History history;
  Comparison with;
  Cluster() { with.history = &history; }
  void add(const std::string& node, const HardwareFacts& facts, double gflops, double slowest = 1) {
    steps.push_back(step(
        node, "dgemm", "", "", kExpect,
        measured(
            "dgemm", {{"gflops", {gflops, "GFLOP/s"}}, {"slowest_core_ratio", {slowest, ""}}},
            {{"physical_cores", 32}, {"machine_cores", 128}, {"flops_per_cycle", 32}, {"cpu_mhz", 2000.0}})));
    with.facts[node] = &facts;
  }
  Check gflops(const std::string& node) const { return judge_measurements(steps, with).at(node).at(1); }
  Check slowest(const std::string& node) const { return judge_measurements(steps, with).at(node).at(2); }
};

}  // namespace

TEST_CASE("shares are compared with equal shares, whole nodes with whole ones", "[share]") {
  Cluster c;
  for (const char* node : {"a", "b", "c"}) c.add(node, c.whole, 4000);
  for (const char* node : {"d", "e", "f"}) c.add(node, c.by_cpuset, 1000);
  c.add("g", c.by_cpuset, 700);
  for (const char* node : {"a", "d"}) CHECK(c.gflops(node).verdict == Verdict::pass);
  CHECK(c.gflops("g").verdict == Verdict::degraded);
  CHECK(c.gflops("g").like == "32 of 128 cores (cpuset)");
  CHECK(c.gflops("a").like.empty());
}

TEST_CASE("of a share the floors of whole nodes do not hold, those of the cores that it had do", "[share]") {
  Cluster c;
  c.add("whole", c.whole, 900);
  c.add("cpuset", c.by_cpuset, 900, 0.5);
  c.add("quota", c.by_quota, 100, 0.5);
  CHECK(c.gflops("whole").verdict == Verdict::fail);
  // 0.4 x 32 cores x 32 x 2 GHz = 819: what the kernel counted are the cores that it could use.
  CHECK(c.gflops("cpuset").verdict == Verdict::pass);
  CHECK(c.gflops("cpuset").expected.value_or(0) == Approx(819.2));
  CHECK(c.slowest("cpuset").verdict == Verdict::degraded);
  // A quota names no cores: nothing is derived, and cores side by side are not equally fast.
  CHECK(c.gflops("quota").verdict == Verdict::not_judged);
  CHECK_FALSE(c.gflops("quota").expected);
  CHECK(c.slowest("quota").verdict == Verdict::not_judged);
}

TEST_CASE("a share's history is that of equal shares", "[share]") {
  Cluster c;
  c.add("a", c.by_cpuset, 1000);
  PastValue whole;
  whole.run = 4;
  whole.value = 4000;
  whole.good = true;
  c.history.nodes["a"][{"dgemm/gflops", ""}] = {whole};
  CHECK(c.gflops("a").verdict == Verdict::pass);
  CHECK(c.gflops("a").history.empty());
  PastValue own = whole;
  own.value = 1200;
  own.like = "32 of 128 cores (cpuset)";
  c.history.nodes["a"][{"dgemm/gflops", ""}].push_back(own);
  CHECK(c.gflops("a").verdict == Verdict::degraded);
  CHECK(c.gflops("a").history.size() == 1);
}

TEST_CASE("what is measured between nodes is no share's", "[share]") {
  const HardwareFacts facts = share("cpuset");
  MeasuredStep link = step("a", "links", "", "b", nullptr, measured("link", {}));
  MeasuredStep together = step("a", "all-reduce", "", "", nullptr, measured("allreduce", {}));
  together.members = {"a", "b"};
  MeasuredStep drive = step("a", "drives", "", "S1", nullptr, measured("drives", {}));
  drive.like = "PM9A3";
  std::vector<MeasuredStep> steps = {link, together, drive};
  mark_shares(steps, {{"a", &facts}});
  CHECK(likeness(steps[0]).empty());
  CHECK(likeness(steps[1]).empty());
  CHECK(likeness(steps[2]) == "PM9A3, 32 of 128 cores (cpuset)");
}
