#include "bench/plot.h"

#include <fmt/format.h>

namespace muster::bench {
namespace {

constexpr double kWidth = 760, kHeight = 360, kLeft = 70, kRight = 240, kTop = 40, kBottom = 50;
constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#2e8b57", "#7a5195", "#b8860b", "#555555"};

double x_of(const Chart& c, double x) { return kLeft + x / c.x_max * (kWidth - kLeft - kRight); }
double y_of(const Chart& c, double y) { return kHeight - kBottom - y / c.y_max * (kHeight - kTop - kBottom); }

std::string text(double x, double y, const std::string& words, const char* anchor = "middle") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, words);
}

std::string axes(const Chart& c) {
  std::string out;
  for (int i = 0; i <= 5; ++i) {
    const double x = c.x_max * i / 5, y = c.y_max * i / 5;
    out +=
        fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>\n",
                    kLeft, y_of(c, y), kWidth - kRight);
    out += text(kLeft - 8, y_of(c, y) + 4, fmt::format("{:.3g}", y), "end");
    out += text(x_of(c, x), kHeight - kBottom + 18, fmt::format("{:.3g}", x));
  }
  out += text((kLeft + kWidth - kRight) / 2, kHeight - 12, c.x_title);
  out +=
      fmt::format("<text transform=\"translate(18 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                  (kTop + kHeight - kBottom) / 2, c.y_title);
  return out + text(kLeft, 22, c.title, "start");
}

}  // namespace

std::string svg(const Chart& chart) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  out += axes(chart);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string points;
    for (const auto& [x, y] : chart.series[i].points)
      points += fmt::format("{:.1f},{:.1f} ", x_of(chart, x), y_of(chart, y));
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
                       colour);
    for (const auto& [x, y] : chart.series[i].points)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x_of(chart, x),
                         y_of(chart, y), colour);
    const double y = kTop + 18 * static_cast<double>(i);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n",
                       kWidth - kRight + 16, y - 9, colour);
    out += text(kWidth - kRight + 32, y, chart.series[i].name, "start");
  }
  return out + "</svg>\n";
}

}  // namespace muster::bench
