#include "controller/causes/explain.h"

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

constexpr size_t kClearly = 4;         // times as often among the nodes with the value as among the others
constexpr size_t kFewest = 3;          // bad nodes, unless all that have the value are
constexpr double kSeldom = 0.01;       // chance at which something else than chance is more likely
constexpr double kNegligible = 1e-12;  // of the first term: the rest of the sum does not matter
constexpr double kSame = 1e-9;

}  // namespace

Chances::Chances(size_t nodes) : log_factorials_(nodes + 1, 0.0) {
  for (size_t i = 1; i <= nodes; ++i)
    log_factorials_[i] = log_factorials_[i - 1] + std::log(static_cast<double>(i));
}

double Chances::log_choose(size_t n, size_t k) const {
  return log_factorials_[n] - log_factorials_[k] - log_factorials_[n - k];
}

double Chances::log_of(const BadOf& with, const BadOf& all) const {
  const auto log_exactly = [&](size_t bad) {
    return log_choose(with.all, bad) + log_choose(all.all - with.all, all.bad - bad) -
           log_choose(all.all, all.bad);
  };
  const double first = log_exactly(with.bad);
  double sum = 0;
  for (size_t bad = with.bad; bad <= std::min(with.all, all.bad); ++bad) {
    const double term = std::exp(log_exactly(bad) - first);
    sum += term;
    if (term < kNegligible) break;
  }
  return first + std::log(sum);
}

bool Chances::explains(const BadOf& with, const BadOf& all, size_t values) const {
  const BadOf without{all.bad - with.bad, all.all - with.all};
  if (with.bad < 2 || without.all == 0) return false;
  if (with.bad * without.all < kClearly * without.bad * with.all) return false;
  if (with.bad == with.all) return true;
  if (with.bad < kFewest) return false;
  return log_of(with, all) + std::log(static_cast<double>(values)) <= std::log(kSeldom);
}

std::optional<Explanation> best_explanation(const std::vector<NodeProperty>& properties,
                                            const std::vector<Health>& nodes, const Chances& chances) {
  BadOf all;
  for (const Health health : nodes) {
    all.all += health != Health::left_out;
    all.bad += health == Health::bad;
  }
  std::optional<Explanation> best;
  for (size_t p = 0; p < properties.size() && all.bad > 1; ++p) {
    std::vector<BadOf> with(properties[p].values.size());
    for (size_t node = 0; node < nodes.size(); ++node) {
      const int value = properties[p].of_node[node];
      if (value < 0 || nodes[node] == Health::left_out) continue;
      ++with[static_cast<size_t>(value)].all;
      with[static_cast<size_t>(value)].bad += nodes[node] == Health::bad;
    }
    for (size_t v = 0; v < with.size(); ++v) {
      if (!chances.explains(with[v], all, with.size())) continue;
      const double chance = chances.log_of(with[v], all);
      if (!best || chance < best->chance - kSame)
        best = Explanation{p, static_cast<int>(v), with[v].all, chance};
    }
  }
  return best;
}

}  // namespace muster
