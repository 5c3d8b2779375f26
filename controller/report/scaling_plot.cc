// The scaling study in the HTML report: efficiency against number of nodes, measured points and the fitted
// model's curve; energy as a table.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "controller/report/markup.h"
#include "controller/report/study.h"

namespace muster::markup {
namespace {

constexpr double kWidth = 620, kHeight = 230, kLeft = 44, kTop = 12, kBottom = 34, kRight = 14;

// The vertical axis is the efficiency; the horizontal one the number of nodes, by doublings.
struct Axes {
  double doublings = 1, most = 1;
  double x(double nodes) const { return kLeft + std::log2(nodes) / doublings * (kWidth - kLeft - kRight); }
  double y(double efficiency) const {
    return kTop + (1 - std::clamp(efficiency / most, 0.0, 1.0)) * (kHeight - kTop - kBottom);
  }
};

Axes axes_of(const ScalingStudy& study) {
  Axes out;
  for (const auto& curve : study.curves)
    for (size_t i = 0; i < curve.points.size(); ++i) {
      out.doublings = std::max(out.doublings, std::log2(curve.points[i].nodes));
      out.most = std::max(out.most, std::min(curve.efficiency[i] * 1.05, 2.0));
    }
  return out;
}

std::string grid(const ScalingStudy& study, const Axes& axes) {
  std::string out;
  for (const double e : {0.0, 0.25, 0.5, 0.75, 1.0})
    out += fmt::format(
        "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"row\" x=\"{:.0f}\" "
        "y=\"{:.1f}\">{:.0f} %</text>",
        kLeft, axes.y(e), kWidth - kRight, kLeft - 6, axes.y(e) + 4, e * 100);
  std::set<int> sizes;
  for (const auto& curve : study.curves)
    for (const auto& point : curve.points) sizes.insert(point.nodes);
  double last = -1e9;
  for (const int n : sizes) {
    if (axes.x(n) - last < 26) continue;  // 500 and 512 would overlap
    last = axes.x(n);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", last, kHeight - 17, n);
  }
  return out + fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">nodes</text>", (kLeft + kWidth - kRight) / 2,
                           kHeight - 3);
}

std::string curve_shapes(const ScalingCurve& curve, const Axes& axes, size_t colour) {
  std::string out;
  if (curve.fitted) {
    out += fmt::format("<path class=\"fit ln{}\" d=\"", colour);
    constexpr int kSteps = 48;
    for (int i = 0; i <= kSteps; ++i) {
      // The model's formula holds for whole nodes only: between them it is drawn by interpolating efficiency
      // over doublings.
      const double doublings = axes.doublings * i / kSteps, nodes = std::exp2(doublings);
      const int low = static_cast<int>(nodes + 1e-9), high = low + 1;
      const double share = std::clamp(nodes - low, 0.0, 1.0);
      out +=
          fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", axes.x(nodes),
                      axes.y(curve.fit.efficiency(low) * (1 - share) + curve.fit.efficiency(high) * share));
    }
    out += "\"/>";
  }
  for (size_t i = 0; i < curve.points.size(); ++i)
    out += fmt::format(
        "<circle class=\"pt{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{} on {}: {:.3g} s a step, {:.0f} "
        "%</title></circle>",
        colour, axes.x(curve.points[i].nodes), axes.y(curve.efficiency[i]), escape(curve.kind),
        curve.points[i].nodes, curve.points[i].seconds, 100 * curve.efficiency[i]);
  return out;
}

// Returns "" if no energy was read at all; the cells of a point without it are empty.
std::string energy_table(const ScalingStudy& study) {
  const std::string covers = energy_covers(study);
  if (covers.empty()) return "";
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>Partition</th><th>Nodes</th><th>Step</th><th>Energy per "
      "step, all nodes</th><th>Work per energy</th><th>Covers</th></tr></thead><tbody>";
  for (const auto& curve : study.curves)
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const StepEnergy& energy = curve.energy[i];
      const bool read = !energy.covers.empty();
      out += fmt::format(
          "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{:.3g} s</td><td "
          "class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
          escape(curve.kind), curve.points[i].nodes, curve.points[i].seconds,
          read ? fmt::format("{:.3g} J", energy.joules) : "",
          read ? fmt::format("{:.3g} GFLOP/J", energy.gflop_per_joule) : "", escape(energy.covers));
    }
  return out + "</tbody></table></div>";
}

}  // namespace

std::string scaling(const Report& report) {
  std::string out;
  for (const auto& study : scaling_studies(report)) {
    const Axes axes = axes_of(study);
    out += fmt::format(
        "<figure><figcaption><b>{}</b> <span class=\"muted\">started on {}; work per node, relative to one "
        "node alone</span></figcaption><div class=\"scroll\"><svg class=\"map study\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" role=\"img\" aria-label=\"efficiency by number of nodes\">",
        escape(study.title), escape(study.node), kWidth, kHeight);
    out += grid(study, axes);
    for (size_t i = 0; i < study.curves.size(); ++i) out += curve_shapes(study.curves[i], axes, i);
    out += "</svg></div>";
    for (size_t i = 0; i < study.curves.size(); ++i)
      out += fmt::format("<p class=\"legend\"><span><i class=\"bg{}\"></i>{}</span></p>", i,
                         escape(describe(study.curves[i])));
    out += energy_table(study) + "</figure>";
  }
  if (out.empty()) return "";
  return out +
         "<p class=\"muted\">strong: the same work on more nodes; weak: the same work per node; tensor and "
         "pipeline: one step split across that many nodes. Points are measured, dashed lines are fitted.</p>";
}

}  // namespace muster::markup
