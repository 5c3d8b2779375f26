#include "controller/report/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "controller/report/measured.h"

namespace muster {
namespace {

// Beyond this factor times the largest number measured, a fitted curve is only a guess.
constexpr int kFarthest = 16;
constexpr int kMostNodes = 1 << 20;
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e6, kMostEfficiency = 1000;
constexpr double kLeastEnergy = 1e-9, kMostEnergy = 1e12;
constexpr size_t kLongestCovers = 120;

std::optional<double> between(const Json& object, const char* key, double least, double most) {
  const Json& value = field(object, key);
  if (!value.is_number()) return {};
  const double number = value.get<double>();
  if (!(number >= least && number <= most)) return {};
  return number;
}

// Returns the energy if all of its fields are valid, else an empty value.
StepEnergy energy_of(const Json& entry) {
  const auto joules = between(entry, "joules", kLeastEnergy, kMostEnergy),
             rate = between(entry, "gflop_per_joule", kLeastEnergy, kMostEnergy);
  const std::string covers = text_of(field(entry, "energy"));
  if (!joules || !rate || covers.size() > kLongestCovers) return {};
  return {*joules, *rate, covers};
}

void fit(ScalingCurve& curve) {
  if (curve.kind != "strong" && curve.kind != "weak") return;
  const auto found = fit_scaling(curve.kind == "strong" ? Scaling::strong : Scaling::weak, curve.points);
  curve.fitted = found.ok();
  if (found.ok())
    curve.fit = *found;
  else
    curve.note = found.error().message;
}

std::vector<ScalingCurve> curves_of(const Json& entries) {
  std::vector<ScalingCurve> out;
  for (const char* kind : {"strong", "weak", "tensor", "pipeline"}) {
    ScalingCurve curve;
    curve.kind = kind;
    for (const Json& entry : entries) {
      const auto nodes = between(entry, "nodes", 1, kMostNodes),
                 seconds = between(entry, "seconds", kLeastSeconds, kMostSeconds),
                 efficiency = between(entry, "efficiency", 0, kMostEfficiency);
      if (text_of(field(entry, "kind")) != kind || !nodes || !seconds || !efficiency ||
          *nodes != std::trunc(*nodes))
        continue;
      curve.points.push_back({static_cast<int>(*nodes), *seconds});
      curve.efficiency.push_back(*efficiency);
      curve.energy.push_back(energy_of(entry));
    }
    if (curve.points.empty()) continue;
    fit(curve);
    out.push_back(std::move(curve));
  }
  return out;
}

}  // namespace

std::vector<ScalingStudy> scaling_studies(const Report& report) {
  std::vector<ScalingStudy> out;
  for (const auto& node : report.nodes)
    for (const auto& check : node.checks) {
      const Json& entries = field(field(check.evidence, "detail"), "scaling");
      if (!entries.is_array()) continue;
      ScalingStudy study{check.title, node.name, curves_of(entries)};
      if (!study.curves.empty()) out.push_back(std::move(study));
    }
  return out;
}

std::string energy_covers(const ScalingStudy& study) {
  std::string out;
  for (const auto& curve : study.curves)
    for (const auto& energy : curve.energy)
      if (!energy.covers.empty() && out.find(energy.covers) == std::string::npos)
        out += (out.empty() ? "" : "; ") + energy.covers;
  return out;
}

std::string describe(const ScalingCurve& curve) {
  size_t last = 0;
  for (size_t i = 0; i < curve.points.size(); ++i)
    if (curve.points[i].nodes > curve.points[last].nodes) last = i;
  const int nodes = curve.points[last].nodes;
  const double efficiency = curve.efficiency[last];
  const StepEnergy& energy = curve.energy[last];
  std::string out = fmt::format("{}: {} node{} {} {:.2f} times one node's work, an efficiency of {:.0f} %",
                                curve.kind, nodes, nodes == 1 ? "" : "s", nodes == 1 ? "does" : "do",
                                nodes * efficiency, 100 * efficiency);
  if (!energy.covers.empty())
    out += fmt::format(", {:.3g} J a step, {:.3g} GFLOP/J ({})", energy.joules, energy.gflop_per_joule,
                       energy.covers);
  if (!curve.fitted)
    return curve.note.empty() || curve.points.size() < 2 ? out : out + "; no model: " + curve.note;
  const int most = kFarthest * nodes, at = knee(curve.fit, 0.5, most);
  const std::string where = at * 2 > most
                                ? fmt::format("worthwhile up to at least {} nodes", at)
                                : fmt::format("not worthwhile beyond {} node{}", at, at == 1 ? "" : "s");
  return out + fmt::format(
                   "; {} (fitted: compute {:.3g} s, each doubling of the nodes {:.3g} s, transfer {:.3g} s; "
                   "error at most {:.1f} %)",
                   where, curve.fit.compute, curve.fit.latency, curve.fit.transfer,
                   100 * curve.fit.worst_error);
}

}  // namespace muster
