#include "controller/report/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace muster {
namespace {

using Row = std::array<double, 3>;

Row terms(Scaling kind, int nodes) {
  const double n = nodes;
  return {kind == Scaling::strong ? 1 / n : 1, std::log2(n), (n - 1) / n};
}

// Least squares of relative errors over the chosen terms, by normal equations; empty if the terms cannot be
// separated.
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

}  // namespace muster
