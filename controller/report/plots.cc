// The plots of the HTML report: SVG for the shapes, HTML for the text, so that the text keeps its size on a
// narrow screen.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "controller/report/markup.h"

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

}  // namespace muster::markup
