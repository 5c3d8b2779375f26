// The training load's measurement: efficiency of each number of nodes relative to one node, energy, share of
// the peak.
#include <algorithm>
#include <map>
#include <set>

#include "kernels/cpu/cpu.h"
#include "kernels/together/training_load.h"

namespace muster::together {
namespace {

constexpr size_t kGroupsListed = 64;

// A meter covers the whole node: with several members on a node, their shares are unknown.
bool own_nodes(const TrainingStudy& study) {
  return study.simulated ||
         std::set<std::string>(study.hosts.begin(), study.hosts.end()).size() == study.hosts.size();
}

double sequences_of(const TrainingStudy& study, const TrainingEntry& entry) {
  if (entry.kind == "strong") return static_cast<double>(study.work.strong);
  if (entry.kind == "weak") return static_cast<double>(study.work.weak_per_node) * entry.nodes;
  return static_cast<double>(study.work.split);
}

struct Point {
  Json json = {};
  double rate = 0, efficiency = 0;  // floating point operations per second and node
};

Point point_of(const TrainingStudy& study, const TrainingEntry& entry, std::map<std::string, double>& one) {
  Point out;
  const double seconds = kernels::median(entry.seconds);
  const double operations = sequences_of(study, entry) * training::operations(study.shape);
  out.rate = operations / seconds / entry.nodes;
  if (entry.nodes == 1) one[entry.kind] = out.rate;
  out.efficiency = out.rate / one[entry.kind == "strong" ? "strong" : "weak"];
  const auto slowest = std::max_element(entry.seconds.begin(), entry.seconds.end());
  const auto slowest_rank = static_cast<size_t>((slowest - entry.seconds.begin()) * entry.nodes);
  out.json = {{"kind", entry.kind},
              {"nodes", entry.nodes},
              {"groups", entry.seconds.size()},
              {"seconds", seconds},
              {"slowest_seconds", *slowest},
              {"slowest_from", study.hosts[slowest_rank]},
              {"gflops_per_node", out.rate / 1e9},
              {"efficiency", out.efficiency}};
  if (entry.seconds.size() > 1 && entry.seconds.size() <= kGroupsListed)
    out.json["each_seconds"] = entry.seconds;
  if (entry.energy && own_nodes(study)) {
    out.json["joules"] = entry.energy->joules;
    out.json["gflop_per_joule"] = operations / entry.energy->joules / 1e9;
    out.json["energy"] = (study.simulated ? "SIMULATED: " : "") + entry.energy->covers;
  }
  return out;
}

// Replaces the metrics of entries with fewer nodes.
void add_metrics(kernels::Measurement& out, const TrainingEntry& entry, const Point& point, double peak) {
  auto& metrics = out.metrics;
  if (entry.nodes > 1) metrics[entry.kind + "_efficiency"] = {point.efficiency, "ratio"};
  if (entry.kind != "weak") return;
  metrics["gflops_per_node"] = {point.rate / 1e9, "GFLOP/s"};
  if (point.json.contains("gflop_per_joule"))
    metrics["gflop_per_joule"] = {point.json["gflop_per_joule"].get<double>(), "GFLOP/J"};
  else
    metrics.erase("gflop_per_joule");
  if (peak > 0) metrics["mfu"] = {point.rate / peak, "ratio"};
}

}  // namespace

std::vector<int> node_counts(int most) {
  std::vector<int> out;
  for (int n = 1; n < most; n *= 2) out.push_back(n);
  out.push_back(most);
  return out;
}

void report(kernels::Measurement& out, const TrainingStudy& study) {
  const std::string variant = training::product_variants().front();
  const auto machine = kernels::look_at_machine(Files(), kernels::usable_cpus());
  const int per_cycle = 2 * kernels::flops_per_cycle(variant, machine);  // single precision
  const double peak = static_cast<double>(machine.physical_cores) * per_cycle * machine.cpu_mhz * 1e6;
  std::map<std::string, double> one;
  Json points = Json::array();
  for (const auto& entry : study.entries) {
    if (!(kernels::median(entry.seconds) > 0)) continue;
    const Point point = point_of(study, entry, one);
    add_metrics(out, entry, point, peak);
    points.push_back(point.json);
  }
  out.detail["scaling"] = points;
  out.detail["model"] = {{"width", study.shape.model},
                         {"heads", study.shape.heads},
                         {"sequence", study.shape.sequence},
                         {"layers", study.shape.layers}};
  out.detail["sequences"] = {{"strong", study.work.strong},
                             {"weak_per_node", study.work.weak_per_node},
                             {"tensor_and_pipeline", study.work.split}};
  if (!own_nodes(study)) out.detail["energy"]["none"] = "several ranks share a node";
  out.detail["variant"] = variant;
  out.detail["physical_cores"] = machine.physical_cores;
  out.detail["cpu_mhz"] = machine.cpu_mhz;
  out.detail["flops_per_cycle"] = per_cycle;
  out.detail["verified"] = "every gradient of every partition, bit by bit, against that of a single node";
}

}  // namespace muster::together
