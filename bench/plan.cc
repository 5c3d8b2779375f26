// What a plan costs for clusters of several sizes: the CPU cluster of docs/specs, installed from the RAM
// system, with the playbooks and the acceptance that are shipped. Made, checked, written as JSON and
// digested, as the controller does it for each plan; every size in a process of its own. Some nodes of each
// size are compared with a plan of that node alone. Seconds are those of the processor, and digests are
// printed so that two versions of muster can be compared.
// usage: muster-bench-plan NODES...     run in the project's folder. Closes with one line of JSON; exit 1
// when a gate is missed: 1,000 nodes in 5 s and 1 GB, a node of 1,000 at most 1.5 times the time of one of
// 100.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/json_dump.h"
#include "bench/cluster.h"

namespace muster {
namespace {

using namespace bench;

constexpr double kGateSeconds = 5, kGateMb = 1000, kGateRatio = 1.5;
constexpr double kGoalSeconds = 2, kGoalMb = 300;

// Of the processor: a plan waits for nothing, and what else runs on the machine takes none of its time.
double busy_seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec at = {};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) / 1e9;
  };
  const double began = now();
  work();
  return now() - began;
}

// What a node is to do by itself does not depend on who else is in the plan. Links are measured between the
// nodes of a plan, so acceptance does.
void check_alone(const Plan& plan, PlannerInput in, const std::string& node) {
  in.request.nodes = {node};
  const Plan alone = planned(in);
  if (alone.config_digests.at(node) != plan.config_digests.at(node))
    give_up(node + ": another digest of its configuration alone");
  size_t compared = 0;
  for (const auto& action : alone.actions) {
    if (action.node != node || action.phase == "accept") continue;
    const Action* other = plan.find(action.id);
    if (!other || other->params != action.params || other->title != action.title)
      give_up(action.id + " is another one in a plan of that node alone");
    ++compared;
  }
  if (compared < 5) give_up(node + ": a plan of it alone has almost no actions");
}

Json measure(int nodes) {
  PlannerInput in = cluster_of(nodes);
  for (const auto& node : in.spec.nodes) in.nodes[node.name] = seen(node);
  rusage before = {}, after = {};
  ::getrusage(RUSAGE_SELF, &before);
  Plan plan;
  std::string text, digest;
  double made = 0, written = 0;
  const double wall = seconds_of([&] {
    made = busy_seconds_of([&] { plan = planned(in); });
    written = busy_seconds_of([&] {
      text = plan_text(plan);
      digest = plan_digest(plan);
    });
  });
  ::getrusage(RUSAGE_SELF, &after);
  for (const size_t at : {size_t{0}, in.spec.nodes.size() / 2, in.spec.nodes.size() - 1})
    check_alone(plan, in, in.spec.nodes[at].name);
  return {{"nodes", nodes},
          {"plan_s", made + written},
          {"make_s", made},
          {"wall_s", wall},
          {"rss_mb", after.ru_maxrss / 1024},
          {"rss_before_mb", before.ru_maxrss / 1024},
          {"json_mb", static_cast<double>(text.size()) / 1e6},
          {"actions", plan.actions.size()},
          {"digest", digest}};
}

bool within_gates(const Json& rows) {
  const auto row = [&](int nodes) -> Json {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const Json& r) { return r["nodes"] == nodes; });
    return found == rows.end() ? Json() : *found;
  };
  const Json large = row(1000), small = row(100);
  if (large.is_null()) return true;
  const double seconds = large["plan_s"].get<double>(), mb = large["rss_mb"].get<double>();
  bool good = seconds <= kGateSeconds && mb <= kGateMb;
  fmt::print(
      "1000 nodes: {:.2f} s and {:.0f} MB; gate {:.0f} s and {:.0f} MB: {}; goal {:.0f} s and {:.0f} MB: "
      "{}\n",
      seconds, mb, kGateSeconds, kGateMb, good ? "kept" : "MISSED", kGoalSeconds, kGoalMb,
      seconds <= kGoalSeconds && mb <= kGoalMb ? "met" : "missed");
  if (small.is_null()) return good;
  const double ratio = seconds / 10 / small["plan_s"].get<double>();
  fmt::print("a node of 1000 takes {:.2f} times the time of one of 100; gate {}: {}\n", ratio, kGateRatio,
             ratio <= kGateRatio ? "kept" : "MISSED");
  return good && ratio <= kGateRatio;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  using namespace muster;
  Json rows = Json::array();
  for (int i = 1; i < argc; ++i) {
    const int nodes = std::atoi(argv[i]);
    const Json row = bench::in_child(fmt::format("{} nodes", nodes), [nodes] { return measure(nodes); });
    fmt::print(
        "{:5} nodes  {:7.2f} s ({:.2f} s to make it; {:.2f} s by the clock)  {:6} MB resident at most "
        "({} before)  {:7.1f} MB of JSON  {} actions\n",
        row["nodes"].get<int>(), row["plan_s"].get<double>(), row["make_s"].get<double>(),
        row["wall_s"].get<double>(), row["rss_mb"].get<int>(), row["rss_before_mb"].get<int>(),
        row["json_mb"].get<double>(), row["actions"].get<int>());
    std::fflush(stdout);
    rows.push_back(row);
  }
  const bool good = within_gates(rows);
  fmt::print("{}\n", dump_json(Json{{"rows", rows}}));
  return good ? 0 : 1;
}
