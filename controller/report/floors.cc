#include "controller/report/floors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "controller/report/measured.h"

namespace muster {
namespace {

struct Floor {
  std::vector<Check*> missed = {};
  std::set<std::string> nodes = {};
  bool failed_otherwise = false;    // a node failed the check for a different reason
  std::optional<double> best = {};  // best value of the nodes that reached their floor
};

std::string range_of(const std::vector<Check*>& checks) {
  const auto less = [](const Check* a, const Check* b) { return *a->measured < *b->measured; };
  const auto [low, high] = std::minmax_element(checks.begin(), checks.end(), less);
  const std::string from = amount(*(*low)->measured, (*low)->unit),
                    to = amount(*(*high)->measured, (*high)->unit);
  return from == to ? from : from + " to " + to;
}

// True if other machines have passed the floor: two faulty ones measured alone do not disprove it.
bool was_reached(const History& history, const std::string& name, const std::string& like,
                 const Floor& floor) {
  const double least = *floor.missed.front()->missed_floor;
  for (const auto& [node, kept] : history.nodes) {
    if (floor.nodes.count(node)) continue;
    for (const auto& [key, past] : kept)
      if (key.first == name && !past.empty() && past.front().good && past.front().like == like &&
          past.front().value >= least)
        return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> question_floors(std::map<std::string, std::vector<Check>>& checks,
                                         const std::string& profile, const History& history) {
  std::map<std::pair<std::string, std::string>, Floor> floors;  // by name and kind of part
  for (auto& [node, list] : checks)
    for (auto& check : list) {
      if (!check.measured) continue;
      Floor& floor = floors[{check.name, check.like}];
      floor.nodes.insert(node);
      if (check.missed_floor)
        floor.missed.push_back(&check);
      else if (check.verdict == Verdict::fail)
        floor.failed_otherwise = true;
      else
        floor.best = std::max(floor.best.value_or(*check.measured), *check.measured);
    }
  std::vector<std::string> questions;
  for (auto& [key, floor] : floors) {
    // Floors may differ: a value that satisfies another node's floor says nothing about this one.
    if (floor.missed.empty() || floor.failed_otherwise || floor.nodes.size() < 2 ||
        (floor.best && *floor.best >= *floor.missed.front()->missed_floor) ||
        was_reached(history, key.first, key.second, floor))
      continue;
    const std::string& name = key.first;
    const std::string what = key.second.empty() ? name : name + " (" + key.second + ")",
                      range = range_of(floor.missed);
    const std::string least =
        "at least " + amount(*floor.missed.front()->missed_floor, floor.missed.front()->unit);
    for (Check* check : floor.missed) {
      check->verdict = Verdict::degraded;
      check->reason +=
          fmt::format("; all {} measured nodes are below this floor ({}): the floor may be wrong",
                      floor.nodes.size(), range);
    }
    questions.push_back(
        fmt::format("Is the threshold right? All {} measured nodes are below the floor for {} ({}); "
                    "measured: {}. No node is quarantined because of this floor, and no node is accepted. If "
                    "the machines are as they should be, lower `min` (or `fail_ratio`) of '{}' in profile "
                    "{}, or use a different profile (`acceptance` in the spec, or `--profile`)",
                    floor.nodes.size(), what, least, range, name, profile));
  }
  return questions;
}

}  // namespace muster
