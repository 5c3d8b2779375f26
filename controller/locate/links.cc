#include "controller/locate/links.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "controller/locate/decode.h"

namespace muster::locate {
namespace {

constexpr double kNearBest =
    0.8;  // fraction of the typical best rate that a test must reach to count for the reference

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The measurements, with node names replaced by numbers, and the findings so far.
struct Case {
  const std::vector<LinkMeasurement>& measured;
  std::vector<std::string> names = {};
  std::vector<std::pair<int, int>> ends = {};  // the ends of each measurement, as indexes into `names`
  std::vector<Probe> probes = {};
  LinkFindings out = {};
};

std::string line(const LinkMeasurement& m, const LinkFindings& out) {
  if (!m.mbps) return fmt::format("{} -> {}: not measured", m.from, m.to);
  const double share = out.reference ? *m.mbps / *out.reference : 0;
  return fmt::format("{} -> {}: {:.4g} MB/s, {:.0f} % of {:.4g}", m.from, m.to, *m.mbps, share * 100,
                     out.reference.value_or(0));
}

void number_names(Case& c) {
  std::map<std::string, int> number;
  for (const auto& m : c.measured) number[m.from], number[m.to];
  for (auto& [name, id] : number) {
    id = static_cast<int>(c.names.size());
    c.names.push_back(name);
  }
  for (const auto& m : c.measured) c.ends.emplace_back(number[m.from], number[m.to]);
}

void set_floor(Case& c, const LinkRule& rule) {
  std::vector<Rate> rates;
  for (size_t i = 0; i < c.measured.size(); ++i)
    if (c.measured[i].mbps) rates.push_back({c.ends[i].first, c.ends[i].second, *c.measured[i].mbps});
  c.out.reference = healthy_rate(c.names.size(), rates);
  if (c.out.reference)
    c.out.derivation =
        fmt::format("rate of a healthy pair: {:.4g} MB/s (median of the tests near the typical best rate)",
                    *c.out.reference);
  if (rule.expected && *rule.expected > c.out.reference.value_or(0)) {
    c.out.reference = rule.expected;
    c.out.derivation = fmt::format("expected {:.4g} MB/s", *rule.expected);
  }
  if (!c.out.reference) {
    c.out.derivation = "nothing was measured";
    return;
  }
  c.out.floor = *c.out.reference * rule.floor_ratio;
  c.out.derivation += fmt::format(" x {:.3g} = {:.4g} MB/s", rule.floor_ratio, *c.out.floor);
}

void set_probes(Case& c) {
  for (size_t i = 0; i < c.measured.size(); ++i) {
    const auto& rate = c.measured[i].mbps;
    const bool slow = !rate || (c.out.floor && *rate < *c.out.floor);
    c.probes.push_back({{c.ends[i].first, c.ends[i].second}, slow && !c.measured[i].as_expected});
  }
}

void set_share(const Case& c, const std::vector<size_t>& bad, LinkSuspect& suspect) {
  std::vector<double> shares;
  for (const size_t i : bad)
    shares.push_back(c.out.reference ? c.measured[i].mbps.value_or(0) / *c.out.reference : 0);
  suspect.share = median_of(shares);
}

std::string how_slow(const LinkSuspect& suspect) {
  return suspect.share.value_or(0) > 0
             ? fmt::format("at {:.0f} % of the rate of a healthy pair", *suspect.share * 100)
             : "without a measurement";
}

LinkSuspect node_suspect(const Case& c, const LocatedFault& located) {
  LinkSuspect suspect;
  const std::string& name = c.names[static_cast<size_t>(located.part)];
  suspect.nodes = {name};
  set_share(c, located.against, suspect);
  size_t sends = 0;
  std::vector<std::string> partners;
  for (const size_t i : located.against) {
    const LinkMeasurement& m = c.measured[i];
    sends += m.from == name;
    const std::string& partner = m.from == name ? m.to : m.from;
    if (std::find(partners.begin(), partners.end(), partner) == partners.end()) partners.push_back(partner);
    suspect.evidence.push_back(line(m, c.out));
  }
  if (sends == 0 || sends == located.against.size()) suspect.direction = sends ? "sends" : "receives";
  // Adds as evidence the rates that the partners achieved with each other, without this node.
  for (size_t i = 0; i < c.measured.size(); ++i) {
    const LinkMeasurement& m = c.measured[i];
    const auto fails = [&](const std::string& who) {
      return std::find(partners.begin(), partners.end(), who) != partners.end();
    };
    if (!c.probes[i].failed && m.from != name && m.to != name && fails(m.from) && fails(m.to))
      suspect.evidence.push_back(line(m, c.out));
  }
  suspect.summary = fmt::format(
      "network link of {} (its NIC, cable or switch port): {}{} with {} partners that are fast with other "
      "nodes",
      name, suspect.direction.empty() ? "" : suspect.direction + " ", how_slow(suspect), partners.size());
  return suspect;
}

// Adds the failures that no single node explains, one suspect per pair.
void add_pairs(Case& c, const Decoded& decoded) {
  std::map<std::pair<int, int>, std::vector<size_t>> bad;
  for (const size_t i : decoded.unexplained) bad[std::minmax(c.ends[i].first, c.ends[i].second)].push_back(i);
  for (const auto& [at, failures] : bad) {
    const std::pair<int, int> ends = at;  // clang 14 captures no name of a binding
    LinkSuspect suspect;
    const auto fast_elsewhere = [&](int end) {
      for (size_t i = 0; i < c.probes.size(); ++i) {
        const bool touches = c.ends[i].first == end || c.ends[i].second == end;
        const std::pair<int, int> pair = std::minmax(c.ends[i].first, c.ends[i].second);
        if (touches && !c.probes[i].failed && pair != ends) return true;
      }
      return false;
    };
    const bool both = fast_elsewhere(ends.first) && fast_elsewhere(ends.second);
    suspect.kind = both && failures.size() >= 2 ? LinkSuspect::Kind::pair : LinkSuspect::Kind::undecided;
    suspect.nodes = {c.names[static_cast<size_t>(ends.first)], c.names[static_cast<size_t>(ends.second)]};
    set_share(c, failures, suspect);
    for (const size_t i : failures) suspect.evidence.push_back(line(c.measured[i], c.out));
    suspect.summary =
        suspect.kind == LinkSuspect::Kind::pair
            ? fmt::format("path between {} and {}: {}; both nodes are fast with other nodes",
                          suspect.nodes[0], suspect.nodes[1], how_slow(suspect))
            : fmt::format("{}, {} or the path between them: {}; the measurements do not show which",
                          suspect.nodes[0], suspect.nodes[1], how_slow(suspect));
    c.out.suspects.push_back(std::move(suspect));
  }
}

}  // namespace

std::string_view to_string(LinkSuspect::Kind kind) {
  switch (kind) {
    case LinkSuspect::Kind::node:
      return "node";
    case LinkSuspect::Kind::pair:
      return "pair";
    case LinkSuspect::Kind::undecided:
      return "undecided";
  }
  return "?";
}

std::optional<double> healthy_rate(size_t ends, const std::vector<Rate>& rates) {
  std::vector<double> best(ends, -1);
  for (const Rate& r : rates)
    for (const int end : {r.a, r.b})
      best[static_cast<size_t>(end)] = std::max(best[static_cast<size_t>(end)], r.value);
  std::erase_if(best, [](double value) { return value < 0; });
  if (best.empty()) return {};
  // Good ends that met only bad ones have a low best rate, too: hence the quartile; 3 in 4 may be such.
  const auto upper = best.begin() + static_cast<std::ptrdiff_t>(best.size() * 3 / 4);
  std::nth_element(best.begin(), upper, best.end());
  const double near = kNearBest * *upper;
  std::vector<double> healthy;
  for (const Rate& r : rates)
    if (r.value >= near) healthy.push_back(r.value);
  return median_of(healthy);
}

LinkFindings locate_links(const std::vector<LinkMeasurement>& measured, const LinkRule& rule) {
  Case c{measured};
  number_names(c);
  set_floor(c, rule);
  set_probes(c);
  const Decoded decoded = decode(c.names.size(), c.probes);
  for (const auto& located : decoded.faulty) c.out.suspects.push_back(node_suspect(c, located));
  add_pairs(c, decoded);
  return c.out;
}

std::vector<std::string> LinkFindings::faults_on(const std::string& from, const std::string& to) const {
  std::vector<std::string> out;
  for (const auto& suspect : suspects) {
    const auto named = [&](const std::string& who) {
      return std::find(suspect.nodes.begin(), suspect.nodes.end(), who) != suspect.nodes.end();
    };
    const bool one = suspect.kind == LinkSuspect::Kind::node;
    if (one ? named(from) || named(to) : named(from) && named(to))
      for (const auto& node : suspect.nodes)
        if ((node == from || node == to) && std::find(out.begin(), out.end(), node) == out.end())
          out.push_back(node);
  }
  return out;
}

}  // namespace muster::locate
