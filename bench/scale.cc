// A cluster from its spec to accepted, for several sizes: the CPU cluster of docs/specs with simulated nodes
// under a virtual clock, and the production planner, executor, agent link and store, which writes a real
// database. Meanwhile operators look at it. Every size in a process of its own. Results of checks are judged
// and runs concluded as by the daemon, but without measurements, so each check is judged as far as its first
// step. Not in it: HTTP, and the RAM systems and images that Bringup looks at. At the end CurrentCauses alone
// is looked at with 2,000 nodes, of which more and more fail.
// usage: muster-bench-scale NODES...     run in the project's folder. Closes with one line of JSON; exit 1
// when a gate is missed: 1,000 nodes in 180 s, a node of 1,000 at most twice the time of one of 100, 99 of
// 100 looks within 100 ms, and no task that holds the controller for longer than that.
#include "bench/scale.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_dump.h"
#include "bench/cluster.h"
#include "sys/log.h"

namespace muster {
namespace {

using namespace bench;

constexpr double kGateSeconds = 180, kGoalSeconds = 60, kGateRatio = 2, kGateMs = 100;
constexpr size_t kMostNamed = 8;
constexpr int kCausesNodes = 2000;

Json measure(int nodes) {
  log::set_level(log::Level::warning);
  Json row = {{"nodes", nodes}};
  Json back;
  row["wall_s"] = seconds_of([&] {
    ScaleCluster cluster(nodes);
    row.update(cluster.bring_up());
    back = cluster.read_back();
  });
  row.update(back);
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  row["rss_mb"] = usage.ru_maxrss / 1024;
  return row;
}

Json measure_causes(int nodes) {
  log::set_level(log::Level::warning);
  return {{"nodes", nodes}, {"calls", ScaleCluster(nodes).look_at_causes()}};
}

bool gate(bool kept, const std::string& what) {
  fmt::print("  {}: {}\n", what, kept ? "kept" : "MISSED");
  return kept;
}

void print_seconds(const Json& seconds) {
  std::vector<std::pair<double, std::string>> most;
  for (const auto& [name, spent] : seconds.items()) most.emplace_back(spent.get<double>(), name);
  std::sort(most.rbegin(), most.rend());
  for (size_t i = 0; i < std::min(most.size(), kMostNamed); ++i)
    fmt::print("  {:7.2f} s  {}\n", most[i].first, most[i].second);
}

void print_calls(const Json& row) {
  for (const auto& [name, calls] : row["calls"].items())
    fmt::print("  {:28} {:5} times, p99 {:6.2f} ms, at most {:6.2f} ms\n", name, calls["count"].get<int>(),
               calls["p99_ms"].get<double>(), calls["most_ms"].get<double>());
}

void print(const Json& row) {
  fmt::print("{:5} nodes  {:7.2f} s  {:6} MB resident at most\n", row["nodes"].get<int>(),
             row["wall_s"].get<double>(), row["rss_mb"].get<int>());
  fmt::print("  {} accepted, {} steps each; {} events in {} min of virtual time\n",
             row["accepted"].get<int>(), row["steps"].get<int>(), row["events"].get<int>(),
             row["virtual_s"].get<int>() / 60);
  print_seconds(row["seconds"]);
  fmt::print("  the longest task took {:.1f} ms: {}\n", row["longest_ms"].get<double>(),
             row["longest"].get<std::string>());
  print_calls(row);
}

bool calls_within_gate(const Json& row) {
  bool good = true;
  for (const auto& [name, calls] : row["calls"].items())
    good &= gate(calls["p99_ms"].get<double>() <= kGateMs,
                 fmt::format("99 of 100 times {} within {} ms", name, kGateMs));
  return good;
}

bool within_gates(const Json& row) {
  const int nodes = row["nodes"].get<int>();
  bool good = gate(row["accepted"] == nodes, "all are accepted");
  good &= calls_within_gate(row);
  good &= gate(row["slow"].empty(), fmt::format("no task takes longer than {} ms", kLongestTask));
  for (const auto& [name, took] : row["slow"].items())
    fmt::print("    {}: up to {} ms\n", name, took.get<DurationMs>());
  if (nodes != 1000) return good;
  const double seconds = row["wall_s"].get<double>();
  good &=
      gate(seconds <= kGateSeconds, fmt::format("{} nodes within {} s (goal {} s: {})", nodes, kGateSeconds,
                                                kGoalSeconds, seconds <= kGoalSeconds ? "met" : "missed"));
  return good;
}

bool within_ratio(const Json& rows) {
  const auto seconds = [&](int nodes) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const Json& r) { return r["nodes"] == nodes; });
    return found == rows.end() ? 0.0 : (*found)["wall_s"].get<double>();
  };
  const double small = seconds(100), large = seconds(1000);
  if (small == 0 || large == 0) return true;
  const double ratio = large / 10 / small;
  return gate(
      ratio <= kGateRatio,
      fmt::format("a node of 1000 takes {:.2f} times the time of one of 100, at most {}", ratio, kGateRatio));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  using namespace muster;
  Json rows = Json::array();
  bool good = argc > 1;
  for (int i = 1; i < argc; ++i) {
    const int nodes = std::atoi(argv[i]);
    const Json row = bench::in_child(fmt::format("{} nodes", nodes), [nodes] { return measure(nodes); });
    print(row);
    good &= within_gates(row);
    std::fflush(stdout);
    rows.push_back(row);
  }
  good &= within_ratio(rows);
  const Json causes = bench::in_child("causes", [] { return measure_causes(kCausesNodes); });
  fmt::print("{:5} nodes, without a run\n", kCausesNodes);
  print_calls(causes);
  good &= calls_within_gate(causes);
  fmt::print("{}\n", dump_json(Json{{"rows", rows}, {"causes", causes}}));
  return good ? 0 : 1;
}
