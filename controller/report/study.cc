#include "controller/report/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "controller/report/measured.h"

namespace muster {
namespace {

using Row = std::array<double, 3>;

Row terms(Scaling kind, int nodes) {
  const double n = nodes;
  return {kind == Scaling::strong ? 1 / n : 1, std::log2(n), (n - 1) / n};
}

// Least squares of relative errors over the chosen terms; empty if the terms cannot be separated.
std::vector<double> solve(Scaling kind, const std::vector<ScalingPoint>& points,
                          const std::vector<size_t>& chosen) {
  const size_t k = chosen.size();
  std::vector<std::vector<double>> m(k, std::vector<double>(k + 1, 0));
  for (const auto& p : points) {
    const Row row = terms(kind, p.nodes);
    for (size_t i = 0; i < k; ++i) {
      const double scaled = row[chosen[i]] / p.seconds;
      for (size_t j = 0; j < k; ++j) m[i][j] += scaled * row[chosen[j]] / p.seconds;
      m[i][k] += scaled;
    }
  }
  for (size_t i = 0; i < k; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < k; ++r)
      if (std::fabs(m[r][i]) > std::fabs(m[pivot][i])) pivot = r;
    std::swap(m[i], m[pivot]);
    if (std::fabs(m[i][i]) < 1e-12) return {};
    for (size_t r = 0; r < k; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (size_t c = i; c <= k; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  std::vector<double> out(k);
  for (size_t i = 0; i < k; ++i) out[i] = m[i][k] / m[i][i];
  return out;
}

double squares(const ScalingFit& fit, const std::vector<ScalingPoint>& points) {
  double sum = 0;
  for (const auto& p : points) sum += std::pow(fit.seconds(p.nodes) / p.seconds - 1, 2);
  return sum;
}

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

double ScalingFit::seconds(int nodes) const {
  const Row row = terms(kind, nodes);
  return compute * row[0] + latency * row[1] + transfer * row[2];
}

double ScalingFit::efficiency(int nodes) const {
  const double one = seconds(1), all = seconds(nodes);
  if (all <= 0) return 0;
  return kind == Scaling::strong ? one / (nodes * all) : one / all;
}

Result<ScalingFit> fit_scaling(Scaling kind, const std::vector<ScalingPoint>& points) {
  std::set<int> sizes;
  for (const auto& p : points) {
    if (p.nodes < 1 || !(p.seconds > 0) || !std::isfinite(p.seconds))
      return fail(Code::invalid, fmt::format("invalid time: {} s on {} nodes", p.seconds, p.nodes));
    sizes.insert(p.nodes);
  }
  if (sizes.size() < 3 || *sizes.begin() != 1)
    return fail(Code::invalid, "a fit needs times for one node and for two other node counts");
  // No term may be negative: the best fit of any subset of terms that has no negative one is the exact one.
  ScalingFit best;
  bool found = false;
  double least = 0;
  for (const std::vector<size_t>& chosen : std::vector<std::vector<size_t>>{{0, 1, 2}, {0, 1}, {0, 2}, {0}}) {
    const auto values = solve(kind, points, chosen);
    const bool possible =
        std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v) && v >= 0; });
    if (values.empty() || !possible) continue;
    ScalingFit fit;
    fit.kind = kind;
    double* const slots[] = {&fit.compute, &fit.latency, &fit.transfer};
    for (size_t i = 0; i < chosen.size(); ++i) *slots[chosen[i]] = values[i];
    const double sum = squares(fit, points);
    if (!std::isfinite(sum) || (found && sum >= least)) continue;
    best = fit;
    least = sum;
    found = true;
  }
  if (!found) return fail(Code::invalid, "no model fits these times");
  for (const auto& p : points)
    best.worst_error = std::max(best.worst_error, std::fabs(best.seconds(p.nodes) / p.seconds - 1));
  return best;
}

int knee(const ScalingFit& fit, double least, int most) {
  int out = 1;
  for (int n = 2; n <= most && fit.efficiency(n) >= least; n *= 2) out = n;
  return out;
}

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
