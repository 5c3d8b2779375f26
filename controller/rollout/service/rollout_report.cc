#include "controller/rollout/service/rollout_report.h"

#include <map>
#include <set>
#include <utility>

#include "controller/bringup/run_view.h"
#include "controller/rollout/service/rollout_shown.h"

namespace muster {
namespace {

using namespace rollout;

constexpr int64_t kLookBack = 40;  // runs

using PhaseTimes = std::map<std::string, DurationMs>;

PhaseTimes times_of(const RunRecords& records, const std::string& node) {
  PhaseTimes out;
  for (const PhaseTime& phase : records.phases(node))
    if (phase.end > phase.start && phase.outcome == "done") out[phase.phase] = phase.end - phase.start;
  return out;
}

// Duration of each phase of these nodes in their last re-image before run `first`.
std::map<std::string, PhaseTimes> times_before(RunArchive& archive, int64_t first,
                                               std::set<std::string> nodes) {
  std::map<std::string, PhaseTimes> out;
  for (int64_t id = first - 1; id > 0 && id >= first - kLookBack && !nodes.empty(); --id) {
    const auto row = archive.run(id);
    if (!row.ok()) continue;
    const auto head = archive.plan_head(row->plan_digest);
    if (!head.ok() || head->kind != to_string(PlanKind::reimage)) continue;
    const auto run = read_run(archive, *row, RunRows::turns);
    if (!run.ok()) continue;
    const auto records = RunRecords::of(*run->plan, run->journal);
    if (!records.ok()) continue;
    for (const auto& name : run->plan->nodes) {
      const bool whole = records->node(name).reason.empty() && !records->node(name).back;
      if (!whole || run->plan->only_serves(NodeName(name)) || nodes.erase(name) == 0) continue;
      out[name] = times_of(*records, name);
    }
  }
  return out;
}

Json phases_json(const PhaseTimes& now, const PhaseTimes& before) {
  Json out = Json::array();
  for (const auto& [phase, ms] : now) {
    const auto old = before.find(phase);
    out.push_back(
        {{"phase", phase}, {"ms", ms}, {"before_ms", old == before.end() ? Json() : Json(old->second)}});
  }
  return out;
}

Json images_json(const Record& record, const PackagesOf& packages) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>>
      pairs;  // (from, to) -> nodes; a node may have had two runs
  for (const BatchRun& run : record.runs)
    for (const auto& [node, image] : run.images)
      if (const auto before = record.before.find(node); before != record.before.end())
        pairs[{before->second, image}].insert(node);
  Json out = Json::array();
  for (const auto& [pair, nodes] : pairs) {
    const auto from = packages(pair.first), to = packages(pair.second);
    out.push_back({{"from", pair.first},
                   {"to", pair.second},
                   {"nodes", nodes},
                   {"packages", from.ok() && to.ok() ? package_changes(*from, *to) : Json()}});
  }
  return out;
}

}  // namespace

Result<Json> rollout_report(const Record& record, RunArchive& archive, const PackagesOf& packages) {
  Json out = record_shown(record);
  std::set<std::string> taken;
  for (const BatchRun& run : record.runs)
    for (const auto& [node, image] : run.images) taken.insert(node);
  std::map<std::string, PhaseTimes> before;
  if (!record.runs.empty()) before = times_before(archive, record.runs.front().run, taken);
  Json nodes = Json::array();
  for (const BatchRun& batch : record.runs) {
    TRY(const auto row, archive.run(batch.run));
    TRY(const auto run, read_run(archive, row, RunRows::turns));
    TRY(const auto records, RunRecords::of(*run.plan, run.journal));
    for (const auto& [name, image] : batch.images) {
      const Json view = run_node_json(*run.plan, records, name);
      nodes.push_back({{"node", name},
                       {"run", batch.run},
                       {"batch", batch.number},
                       {"canary", batch.canary},
                       {"result", view["result"]},
                       {"reason", view["reason"]},
                       {"phases", phases_json(times_of(records, name), before[name])}});
    }
  }
  out["images"] = images_json(record, packages);
  out["nodes"] = nodes;
  out["left"] = record.left;
  return out;
}

}  // namespace muster
