// What earlier runs measured, in short: kept beside each signed report, read by later runs to compare with.
//
// Nothing measured in a system that its node did not keep is stored. A value counts as history only when it
// passed on a node that was handed over: a bad run does not lower the limits. Thread: pure functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/report.h"

namespace muster {

struct PastValue {
  int64_t run = 0;
  double value = 0;
  bool good = false;      // passed, on a node that was handed over
  bool degraded = false;  // counted against the node then
  std::string like = {};  // Check::like
  std::string reason = {};
  std::vector<std::string> blame = {};
};

struct History {
  // node -> (check, subject) -> values, newest first; at least one
  using Key = std::pair<std::string, std::string>;
  std::map<std::string, std::map<Key, std::vector<PastValue>>> nodes = {};

  const std::vector<PastValue>& of(const std::string& node, const std::string& check,
                                   const std::string& subject) const;
};

// The text kept with a report.
std::string measured_text(const Report& report);
// Adds what the text of an earlier run contains; call with the newest run first. Code::corrupt when it cannot
// be read.
Status add_history(History& history, int64_t run, const std::string& text);

// A different machine had the node's name until run `last`: drops what it measured.
void drop_until(History& history, const std::string& node, int64_t last);

// Check::like of what a machine has where neither its spec nor equal machines show what it should have.
inline constexpr const char* kOwnHardware = "own";
// Compares such checks with the newest run after which the node was handed over: less than then is degraded.
void compare_hardware(NodeReport& node, const History& history);

// What counted against a node and was not measured since still counts against it: adds those checks as
// degraded.
void carry_over(NodeReport& node, const History& history);

}  // namespace muster
