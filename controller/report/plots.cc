// The plots of the HTML report: shapes in SVG; text in HTML, so that it keeps its size on narrow screens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "controller/report/markup.h"
#include "controller/report/study.h"

namespace muster::markup {
namespace {

constexpr size_t kHeatMapNodes = 64;
constexpr double kStrip = 1000;  // width of a strip in its own units

// Colour class of a phase; the same phase has the same colour in every report.
std::string phase_class(const std::string& name) {
  static const std::vector<std::string> kPhases = {"discover",  "power",   "image",   "boot",
                                                   "configure", "storage", "cluster", "accept"};
  // Phases of a node that is re-imaged in place, in addition to those above.
  static const std::vector<std::string> kInPlace = {"pause", "commit", "resume", "return"};
  if (const auto own = std::find(kInPlace.begin(), kInPlace.end(), name); own != kInPlace.end())
    return fmt::format("phi{}", own - kInPlace.begin());
  const auto it = std::find(kPhases.begin(), kPhases.end(), name);
  return fmt::format("ph{}", it - kPhases.begin());
}

// Returns the distance between ticks, one of 1, 2, 5, 10, 15, 30 s, ..., such that about five ticks fit.
DurationMs tick_step(DurationMs total) {
  for (const DurationMs step : {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400})
    if (total / (step * kSecond) <= 5) return step * kSecond;
  return 24 * 3600 * kSecond;
}

std::string tick_text(DurationMs t) {
  if (t == 0) return "0";
  if (t % kMinute != 0)
    return t < kMinute ? fmt::format("{} s", t / kSecond)
                       : fmt::format("{}:{:02}", t / kMinute, t % kMinute / kSecond);
  return fmt::format("{} min", t / kMinute);
}

double share(DurationMs part, DurationMs total) {
  return std::clamp(static_cast<double>(part) / static_cast<double>(std::max<DurationMs>(total, 1)), 0.0,
                    1.0);
}

std::string timeline_row(const NodeReport& node, TimeMs begin, DurationMs total) {
  std::string rects;
  for (const auto& phase : node.phases) {
    const double x = share(phase.start - begin, total) * kStrip;
    const double width = std::max(share(phase.duration, total) * kStrip, 1.5);
    rects += fmt::format(
        "<rect class=\"{}{}\" x=\"{:.1f}\" y=\"2\" width=\"{:.1f}\" height=\"16\"><title>{}: "
        "{}{}</title></rect>",
        phase_class(phase.name), phase.outcome == "failed" ? " bad" : "", x, width, escape(phase.name),
        duration(phase.duration), phase.outcome == "done" ? "" : ", " + escape(phase.outcome));
  }
  return fmt::format(
      "<a class=\"lab\" href=\"#node-{}\">{}</a><svg class=\"strip\" viewBox=\"0 0 1000 20\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"phases of {}\">{}</svg>",
      anchor(node.name), escape(node.name), escape(node.name), rects);
}

const LinkRecord* find_link(const Report& report, const std::string& from, const std::string& to) {
  for (const auto& link : report.links)
    if (link.from == from && link.to == to) return &link;
  return nullptr;
}

struct Range {
  double low = 0, high = 0;
};
Range link_range(const Report& report) {
  Range out{1e300, 0};
  for (const auto& link : report.links)
    if (link.mbps) out.low = std::min(out.low, *link.mbps), out.high = std::max(out.high, *link.mbps);
  return out;
}

std::string rate_text(double mbps) {
  return mbps >= 10000 ? fmt::format("{:.1f}G", mbps / 1000) : fmt::format("{:.3g}", mbps);
}

std::string heat_cell(const Report& report, size_t row, size_t column, const Range& range, double cell,
                      bool words) {
  const std::string& from = report.nodes[row].name;
  const std::string& to = report.nodes[column].name;
  const double x = static_cast<double>(column) * cell, y = static_cast<double>(row) * cell;
  if (row == column)
    return fmt::format("<rect class=\"self\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>",
                       x, y, cell - 2, cell - 2);
  const LinkRecord* link = find_link(report, from, to);
  const bool measured = link && link->mbps;
  const double level = measured && range.high > 0 ? *link->mbps / range.high : 0;
  std::string out = fmt::format(
      "<rect class=\"{}\" style=\"--l:{:.2f}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\"><title>{} to {}: {}{}</title></rect>",
      !measured                            ? "none"
      : link->verdict == Verdict::fail     ? "heat bad"
      : link->verdict == Verdict::degraded ? "heat slow"
                                           : "heat",
      level, x, y, cell - 2, cell - 2, escape(from), escape(to),
      measured ? fmt::format("{:.4g} MB/s", *link->mbps) : "not measured",
      link && link->rtt_ms ? fmt::format(", round trip {:.3g} ms", *link->rtt_ms) : "");
  if (words)
    out += fmt::format("<text class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", level > 0.55 ? "on" : "off",
                       x + cell / 2 - 1, y + cell / 2 + 3, measured ? rate_text(*link->mbps) : "?");
  return out;
}

struct Bar {
  const NodeReport* node;
  const Check* check;
};

std::string bar_row(const Bar& bar, double scale) {
  const Check& check = *bar.check;
  const double measured = check.measured.value_or(0) / scale * kStrip;
  std::string shapes = fmt::format("<rect class=\"v-{}\" x=\"0\" y=\"3\" width=\"{:.1f}\" height=\"14\"/>",
                                   to_string(check.verdict), std::max(measured, 2.0));
  if (check.expected) {
    const double at = std::clamp(*check.expected / scale * kStrip, 2.0, kStrip - 2);
    shapes += fmt::format("<path class=\"want\" d=\"M{:.1f} 0V20\"/>", at);
  }
  std::string label = bar.node->name;
  if (!check.subject.empty()) label += " " + check.subject;
  return fmt::format(
      "<a class=\"lab\" href=\"#node-{}\">{}</a><svg class=\"strip\" viewBox=\"0 0 1000 20\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg><span class=\"val\">{}</span>",
      anchor(bar.node->name), escape(label), escape(label + ": " + check.measured_text), shapes,
      escape(check.measured_text));
}

std::string bar_block(const std::vector<Bar>& rows) {
  double scale = 0;
  std::set<std::string> expectations;
  for (const auto& row : rows) {
    scale = std::max({scale, row.check->measured.value_or(0), row.check->expected.value_or(0)});
    if (!row.check->expected_text.empty()) expectations.insert(row.check->expected_text);
  }
  if (scale <= 0) return "";
  const Check& first = *rows.front().check;
  const std::string metric = markup::metric_label(first.name);
  std::string out = fmt::format(
      "<figure><figcaption><b>{}</b> {} <span class=\"muted\">{}</span></figcaption><div class=\"chart "
      "three\">",
      escape(first.title), escape(metric), expectations.size() == 1 ? escape(*expectations.begin()) : "");
  for (const auto& row : rows) out += bar_row(row, scale * 1.02);
  return out + "</div></figure>";
}

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
      // The model holds for whole nodes only: between them, efficiency is interpolated over doublings.
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

std::string timeline(const Report& report) {
  TimeMs begin = report.started, end = report.ended;
  std::set<std::string> names;
  for (const auto& node : report.nodes)
    for (const auto& phase : node.phases) {
      begin = begin == 0 ? phase.start : std::min(begin, phase.start);
      end = std::max(end, phase.start + phase.duration);
      names.insert(phase.name);
    }
  if (names.empty()) return "";
  const DurationMs total = std::max<DurationMs>(end - begin, 1);
  std::string out = "<div class=\"chart\">";
  for (const auto& node : report.nodes) out += timeline_row(node, begin, total);
  out += "<span></span><div class=\"axis\">";
  for (DurationMs t = 0; t <= total; t += tick_step(total))
    out += fmt::format("<span style=\"left:{:.2f}%\">{}</span>", share(t, total) * 100, tick_text(t));
  out += "</div></div><p class=\"legend\">";
  std::vector<std::string> order(names.begin(), names.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return phase_class(a) < phase_class(b); });
  for (const auto& name : order)
    out += fmt::format("<span><i class=\"{}\"></i>{}</span>", phase_class(name), escape(name));
  return out + "</p>";
}

std::string heat_map(const Report& report) {
  const size_t n = report.nodes.size();
  if (report.links.empty() || n < 2) return "";
  if (n > kHeatMapNodes)
    return fmt::format(
        "<p class=\"muted\">{} nodes are too many for a chart; the links are in the JSON report.</p>", n);
  const bool words = n <= 16;
  const double cell = words ? 46 : 14;
  size_t longest = 0;
  for (const auto& node : report.nodes) longest = std::max(longest, std::min<size_t>(node.name.size(), 16));
  const bool level = words && longest <= 6;  // names are horizontal if they fit above their column
  const double left = static_cast<double>(longest) * 7.5 + 14,
               top = level ? 22 : static_cast<double>(longest) * 7.5 + 8;
  const double width = left + cell * static_cast<double>(n), height = top + cell * static_cast<double>(n);
  const Range range = link_range(report);
  std::string out = fmt::format(
      "<div class=\"scroll\"><svg class=\"map\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" role=\"img\" aria-label=\"link bandwidth by pair\">",
      width, height);
  for (size_t i = 0; i < n; ++i) {
    const std::string name = escape(report.nodes[i].name.substr(0, 16));
    const double middle = cell * (static_cast<double>(i) + 0.5);
    out += fmt::format("<text class=\"row\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", left - 8, top + middle + 3,
                       name);
    if (level)
      out += fmt::format("<text class=\"col\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", left + middle - 1,
                         top - 8, name);
    else
      out +=
          fmt::format("<text class=\"turned\" transform=\"translate({:.0f},{:.0f}) rotate(-90)\">{}</text>",
                      left + middle + 3, top - 6, name);
  }
  out += fmt::format("<g transform=\"translate({:.0f},{:.0f})\">", left, top);
  for (size_t row = 0; row < n; ++row)
    for (size_t column = 0; column < n; ++column) out += heat_cell(report, row, column, range, cell, words);
  out += "</g></svg></div>";
  return out + fmt::format(
                   "<p class=\"muted\">From row to column, MB/s of verified data (10<sup>6</sup> bytes){}. A "
                   "red frame marks a failed link, an amber frame a link slower than expected, a dashed "
                   "frame a link that was not measured.</p>",
                   range.high > 0 ? fmt::format(", {:.4g} to {:.4g}", range.low, range.high) : "");
}

std::string bars(const Report& report) {
  std::map<std::string, std::vector<Bar>> by_name;
  std::vector<std::string> order;
  for (const auto& node : report.nodes)
    for (const auto& check : node.checks) {
      if (!check.measured || check.name.starts_with("hardware/")) continue;
      auto& rows = by_name[check.name];
      if (rows.empty()) order.push_back(check.name);
      rows.push_back({&node, &check});
    }
  std::string out;
  for (const auto& name : order) out += bar_block(by_name[name]);
  return out;
}

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
