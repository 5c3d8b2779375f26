// Line charts as SVG, for the documents: written by the benchmarks from what they measured, without any
// library. Thread: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster::bench {

struct Series {
  std::string name = {};
  std::vector<std::pair<double, double>> points = {};
};
struct Chart {
  std::string title = {}, x_title = {}, y_title = {};
  double x_max = 1, y_max = 1;  // both axes begin at 0
  std::vector<Series> series = {};
};
std::string svg(const Chart& chart);

}  // namespace muster::bench
